"""What a caller asks for, with an id where attempts must be told apart."""

import secrets
from collections.abc import Iterable

from stagewire.client.core.requests import Order


def make_order(
    pipeline: str,
    request_id: str | None,
    outputs: Iterable[str] | None,
    *,
    is_idempotent: bool,
    session_id: str = "",
) -> Order:
    """Returns an order; one that may be sent again always has an id, by which it is known."""
    if not request_id:
        request_id = f"c-{secrets.token_hex(8)}" if is_idempotent else ""
    return Order(pipeline, request_id, tuple(outputs or ()), session_id, is_idempotent)
