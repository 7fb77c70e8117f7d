"""CoordinatorService: runs pipelines for clients, and says what runs where."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

import grpc

from coordinator.gateway.tasks import end_task, first_message
from coordinator.pipeline.engine import Engine
from coordinator.pipeline.request import RunningRequest
from coordinator.pipeline.sink import OutputSink
from coordinator.pipeline.topology import Endpoint
from coordinator.serve.sinks import StreamSink, UnarySink
from stagewire.channel import GenericRpcHandler, ServicerContext
from stagewire.errors import CancelledError, FieldInvalidError, MessageTooBigError, StageError
from stagewire.frame import read_message
from stagewire.limits import CHUNK_BYTES, WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds

SERVICE: Final = "stagewire.v1.CoordinatorService"
_OPEN_SECONDS: Final = 30.0
"""Time between the begin of Infer and its `open`: a silent caller must not hold a call for ever."""


class StateSource(Protocol):
    """Where the state of the coordinator comes from."""

    def state(self) -> pb.CoordinatorState:
        """Returns the state as it is now."""

    def changes(self) -> AsyncIterator[pb.CoordinatorState]:
        """Iterates over the state now and after every change."""


class CoordinatorService:
    """The public service. Its calls raise; the guard around it answers with statuses."""

    def __init__(
        self, engine: Engine, states: StateSource, *, open_seconds: float = _OPEN_SECONDS
    ) -> None:
        self._open_seconds = open_seconds
        self._engine = engine
        self._states = states

    def handler(self) -> GenericRpcHandler:
        """Returns the handlers. Messages with items pass as bytes: their payload is not parsed."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Run": grpc.unary_unary_rpc_method_handler(self.run),
                "Infer": grpc.stream_stream_rpc_method_handler(self.infer),
                "GetPlacement": grpc.unary_unary_rpc_method_handler(
                    self.get_placement,
                    pb.GetPlacementRequest.FromString,
                    pb.GetPlacementResponse.SerializeToString,
                ),
                "WatchState": grpc.unary_stream_rpc_method_handler(
                    self.watch_state,
                    pb.WatchStateRequest.FromString,
                    pb.WatchStateResponse.SerializeToString,
                ),
                "OpenSession": grpc.unary_unary_rpc_method_handler(
                    self.open_session,
                    pb.OpenSessionRequest.FromString,
                    pb.OpenSessionResponse.SerializeToString,
                ),
                "RenewSession": grpc.unary_unary_rpc_method_handler(
                    self.renew_session,
                    pb.RenewSessionRequest.FromString,
                    pb.RenewSessionResponse.SerializeToString,
                ),
                "CloseSession": grpc.unary_unary_rpc_method_handler(
                    self.close_session,
                    pb.CloseSessionRequest.FromString,
                    pb.CloseSessionResponse.SerializeToString,
                ),
            },
        )

    async def run(self, message: bytes, context: ServicerContext) -> bytes:
        """Runs a pipeline on one item a port."""
        request, payload = read_message(message, pb.RunRequest(), FieldInvalidError)
        sink = UnarySink()
        running = await self._open(request.open, sink, context)
        sink.attach(running)
        try:
            for item in request.items:
                running.take(Endpoint(None, item.port), item, payload)
            running.end_inputs()
            return sink.answer(await sink.ended)
        finally:
            running.fail(CancelledError("the caller went away"))

    async def infer(
        self, messages: AsyncIterator[bytes], context: ServicerContext
    ) -> AsyncIterator[bytes]:
        """Runs a pipeline while items come in and go out."""
        first = await first_message(messages, "`open`", self._open_seconds)
        opened, _ = read_message(first, pb.InferRequest(), FieldInvalidError)
        if not opened.HasField("open"):
            raise FieldInvalidError("the first message of Infer must be `open`")
        sink = StreamSink()
        running = await self._open(opened.open, sink, context)
        sink.put(self._accepted(running))
        reader = asyncio.create_task(_read(running, messages))
        try:
            while (answer := await sink.next_message()) is not None:
                yield answer
        finally:
            # Also reached when the client has gone: then nobody reads, and what runs must end.
            running.fail(CancelledError("the caller went away"))
            await end_task(reader)

    async def get_placement(
        self, _request: pb.GetPlacementRequest, _context: ServicerContext
    ) -> pb.GetPlacementResponse:
        """Answers what runs where, and why."""
        return pb.GetPlacementResponse(state=self._states.state())

    async def watch_state(
        self, _request: pb.WatchStateRequest, _context: ServicerContext
    ) -> AsyncIterator[pb.WatchStateResponse]:
        """Sends the whole state at once, and again after every change."""
        async for state in self._states.changes():
            yield pb.WatchStateResponse(state=state)

    async def open_session(
        self, request: pb.OpenSessionRequest, _context: ServicerContext
    ) -> pb.OpenSessionResponse:
        """Opens a session of a pipeline."""
        has_time = request.HasField("idle_timeout")
        session = self._engine.open_session(
            request.pipeline, to_seconds(request.idle_timeout) if has_time else None
        )
        return pb.OpenSessionResponse(
            session_id=session.session_id, lease=to_duration(session.lease_seconds)
        )

    async def renew_session(
        self, request: pb.RenewSessionRequest, _context: ServicerContext
    ) -> pb.RenewSessionResponse:
        """Begins the lease of a session anew."""
        session = self._engine.sessions.renew(request.session_id)
        return pb.RenewSessionResponse(lease=to_duration(session.lease_seconds))

    async def close_session(
        self, request: pb.CloseSessionRequest, _context: ServicerContext
    ) -> pb.CloseSessionResponse:
        """Ends a session, here and in the workers."""
        await self._engine.sessions.close(request.session_id)
        return pb.CloseSessionResponse()

    async def _open(
        self, opening: pb.InferOpen, sink: OutputSink, context: ServicerContext
    ) -> RunningRequest:
        if opening.session_id:
            await self._engine.sessions.wait_for_turn(opening.session_id)
        remaining = context.time_remaining()
        return self._engine.open(
            opening.pipeline,
            sink,
            request_id=opening.request_id,
            timeout_seconds=None if remaining is None else float(remaining),
            outputs=opening.outputs,
            session_id=opening.session_id,
            attempt=opening.attempt or 1,
            is_idempotent=opening.idempotent,
        )

    @staticmethod
    def _accepted(running: RunningRequest) -> pb.InferResponse:
        return pb.InferResponse(
            accepted=pb.InferAccepted(
                request_id=running.request_id,
                credits=[
                    pb.InputCredit(port=port.name, items=WINDOW_ITEMS, size_bytes=WINDOW_BYTES)
                    for port in running.topology.inputs
                ],
            )
        )


async def _read(running: RunningRequest, messages: AsyncIterator[bytes]) -> None:
    """Takes what a client sends; whatever ends that early ends the request."""
    try:
        await _take_all(running, messages)
    except StageError as error:
        running.fail(error)
    except BaseException:
        running.fail(CancelledError("the caller went away"))
        raise


async def _take_all(running: RunningRequest, messages: AsyncIterator[bytes]) -> None:
    """Takes every message. A stream that ends without a word is a client that has gone."""
    has_ended_all = False
    async for message in messages:
        request, payload = read_message(message, pb.InferRequest(), FieldInvalidError)
        kind = request.WhichOneof("message")
        if kind == "item":
            if request.item.payload_size_bytes > CHUNK_BYTES:
                running.fail(
                    MessageTooBigError(f"a chunk of Infer has at most {CHUNK_BYTES} bytes")
                )
                return
            running.take(Endpoint(None, request.item.port), request.item, payload)
        elif kind == "end_of_input":
            port = request.end_of_input.port
            if port:
                running.take_end(Endpoint(None, port), None)
            else:
                has_ended_all = True
                running.end_inputs()
        elif kind == "output_credit":
            grant = request.output_credit
            running.give_back(Endpoint(None, grant.port), grant.items, grant.size_bytes)
        else:
            running.fail(FieldInvalidError("a message of Infer is empty or opens a second time"))
            return
    if not has_ended_all and not running.have_inputs_ended:
        running.fail(CancelledError("the caller ended the stream without `end_of_input`"))
