"""The one interceptor of every server: checks tokens and turns exceptions into statuses."""

import asyncio
import contextlib
import hmac
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import grpc
import grpc.aio

from stagewire import status
from stagewire.channel import RpcMethodHandler, ServerInterceptor, ServicerContext
from stagewire.errors import InternalFaultError, StageError, TokenInvalidError

_log = logging.getLogger(__name__)


class Guard(ServerInterceptor):
    """Lets a call through to its servicer, and no exception's text back out.

    `tokens` names the token of each service by its full name. A service that is not named is
    refused, one whose token is None checks its callers itself or is open on purpose.
    """

    def __init__(self, tokens: Mapping[str, str | None]) -> None:
        self._tokens = dict(tokens)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[RpcMethodHandler]],
        details: grpc.HandlerCallDetails,
    ) -> RpcMethodHandler:
        """Returns the servicer's handler with the check and the translation around it."""
        handler = await continuation(details)
        if handler is None:
            # An unknown method; gRPC's typing leaves this case out.
            return handler
        refusal = self._refusal(details)
        return _wrap(handler, refusal)

    def _refusal(self, details: grpc.HandlerCallDetails) -> StageError | None:
        service = details.method.split("/")[1]
        token = self._tokens.get(service, "")
        if token is None:
            return None
        # Metadata values may be str or bytes, which gRPC's typing leaves open.
        given = next(
            (str(v) for k, v in details.invocation_metadata or () if k == "authorization"), ""
        )
        if token and hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            return None
        what = "wrong" if given else "missing"
        return TokenInvalidError(f"the token of this call is {what}; use the endpoint file")


def _wrap(handler: Any, refusal: StageError | None) -> RpcMethodHandler:
    """Returns a handler of the same shape. Shapes are told apart at run time, hence Any."""
    if not handler.response_streaming:
        inner = handler.stream_unary if handler.request_streaming else handler.unary_unary

        async def answer(request: Any, context: ServicerContext) -> Any:
            async with _Translation(context):
                _raise(refusal)
                return await inner(request, context)

        make = (
            grpc.stream_unary_rpc_method_handler
            if handler.request_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(answer, handler.request_deserializer, handler.response_serializer)

    inner = handler.stream_stream if handler.request_streaming else handler.unary_stream

    async def stream(request: Any, context: ServicerContext) -> AsyncIterator[Any]:
        async with _Translation(context):
            _raise(refusal)
            outcome = inner(request, context)
            if hasattr(outcome, "__aiter__"):
                # Closed at once when the caller has gone, not when it is collected.
                async with contextlib.aclosing(outcome) as messages:
                    async for message in messages:
                        yield message
            else:
                # Servicers of gRPC's own packages write through the context instead.
                await outcome

    make = (
        grpc.stream_stream_rpc_method_handler
        if handler.request_streaming
        else grpc.unary_stream_rpc_method_handler
    )
    return make(stream, handler.request_deserializer, handler.response_serializer)


def _raise(refusal: StageError | None) -> None:
    if refusal is not None:
        raise refusal


class _Translation:
    """Ends a call with the status of the exception that leaves the block."""

    def __init__(self, context: ServicerContext) -> None:
        self._context = context

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None or isinstance(
            error, (asyncio.CancelledError, GeneratorExit, grpc.aio.AbortError)
        ):
            return False
        if not isinstance(error, StageError):
            error_id = uuid.uuid4().hex[:12]
            _log.error("call failed error_id=%s", error_id, exc_info=error)
            error = InternalFaultError(
                f"an unexpected fault; the log has its cause under error id {error_id}",
                error_id=error_id,
            )
        failure = status.to_message(error)
        await self._context.abort(
            status.GRPC_CODES[error.code],
            error.message,
            ((status.TRAILER, failure.SerializeToString()),),
        )
        return False
