"""The clients: run pipelines from Python, and read files as their inputs.

Names are imported when first used, so that importing this package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewire.client.async_call import AsyncCall
    from stagewire.client.async_client import AsyncClient, connect_async
    from stagewire.client.async_session import AsyncSession
    from stagewire.client.call import Call
    from stagewire.client.client import Client, connect
    from stagewire.client.core.dialogue import Output
    from stagewire.client.media import audio, image, text, write_wav
    from stagewire.client.receipt import (
        Grade,
        HopReceipt,
        Receipt,
        StageReceipt,
        Table,
        Verdict,
    )
    from stagewire.client.result import Result
    from stagewire.client.session import Session
    from stagewire.client.state import (
        ConstraintState,
        CoordinatorState,
        LedgerState,
        Phase,
        PipelineState,
        ReservationState,
        StageState,
        WorkerState,
    )

_HOMES = {
    "async_call": ("AsyncCall",),
    "async_client": ("AsyncClient", "connect_async"),
    "async_session": ("AsyncSession",),
    "call": ("Call",),
    "client": ("Client", "connect"),
    "core.dialogue": ("Output",),
    "media": ("audio", "image", "text", "write_wav"),
    "receipt": ("Grade", "HopReceipt", "Receipt", "StageReceipt", "Table", "Verdict"),
    "result": ("Result",),
    "session": ("Session",),
    "state": (
        "ConstraintState",
        "CoordinatorState",
        "LedgerState",
        "Phase",
        "PipelineState",
        "ReservationState",
        "StageState",
        "WorkerState",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AsyncCall",
    "AsyncClient",
    "AsyncSession",
    "Call",
    "Client",
    "ConstraintState",
    "CoordinatorState",
    "Grade",
    "HopReceipt",
    "LedgerState",
    "Output",
    "Phase",
    "PipelineState",
    "Receipt",
    "ReservationState",
    "Result",
    "Session",
    "StageReceipt",
    "StageState",
    "Table",
    "Verdict",
    "WorkerState",
    "audio",
    "connect",
    "connect_async",
    "image",
    "text",
    "write_wav",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
