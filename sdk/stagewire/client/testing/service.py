"""The public service of a fake coordinator, on threads."""

import contextlib
import hmac
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import grpc

from stagewire import frame, ports, status
from stagewire.channel import GenericRpcHandler
from stagewire.chunks import chunks_of, whole_item
from stagewire.client.testing.desk import Admitted, Desk
from stagewire.client.testing.outbox import Outbox
from stagewire.client.testing.request import Exchange
from stagewire.errors import (
    CancelledError,
    FieldInvalidError,
    MessageTooBigError,
    StageError,
    TokenInvalidError,
)
from stagewire.limits import MESSAGE_BYTES, WINDOW_BYTES, WINDOW_ITEMS
from stagewire.tensor import Value, encode
from stagewire.v1 import capability_pb2, tensor_pb2
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration, to_seconds

SERVICE: Final = "stagewire.v1.CoordinatorService"
_ANSWER_BYTES: Final = MESSAGE_BYTES // 2
Context = Any
"""`grpc.ServicerContext`, whose typing lacks some of what it can."""
Outcome: TypeAlias = "pb.InferSummary | StageError"


class Service:
    """Answers calls from a desk."""

    def __init__(self, desk: Desk, token: str) -> None:
        self._desk = desk
        self._token = token

    def handler(self) -> GenericRpcHandler:
        """Returns the handlers."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Run": grpc.unary_unary_rpc_method_handler(self._guarded(self._run)),
                "Infer": grpc.stream_stream_rpc_method_handler(self._guarded_stream(self._infer)),
                "WatchState": grpc.unary_stream_rpc_method_handler(
                    self._guarded_stream(self._watch_state)
                ),
                **{
                    name: grpc.unary_unary_rpc_method_handler(self._guarded(answer))
                    for name, answer in (
                        ("GetPlacement", self._get_placement),
                        ("OpenSession", self._open_session),
                        ("RenewSession", self._renew_session),
                        ("CloseSession", self._close_session),
                    )
                },
            },
        )

    # --- calls ---

    def _run(self, message: bytes, context: Context) -> bytes:
        request, payload = frame.read_message(message, pb.RunRequest(), FieldInvalidError)
        items: list[tensor_pb2.Item] = []
        payloads: list[memoryview] = []

        def emit(port: str, sequence: int, value: Value) -> None:
            descriptor, piece = encode(value)
            offset = sum(payload.nbytes for payload in payloads)
            items.append(whole_item(port, sequence, descriptor, piece, offset))
            payloads.append(piece)
            if offset + piece.nbytes > _ANSWER_BYTES:
                raise MessageTooBigError(
                    f"the outputs exceed the {_ANSWER_BYTES} bytes of one answer; take them as"
                    " they come, with `infer`"
                )
            exchange.grant_output(port, 1, descriptor.size_bytes)

        with self._admitted(request.open) as admitted:
            exchange = self._exchange(admitted, emit, lambda *_: None)
            outcomes: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
            _at_end(context, exchange.cancel)
            _at_end(context, lambda: outcomes.put(CancelledError("the caller went away")))
            for item in request.items:
                exchange.take(item, payload)
            exchange.end("")
            _start(lambda: outcomes.put(self._carry_out(admitted, exchange)))
            summary = outcomes.get()
            if isinstance(summary, StageError):
                raise summary
        answer = pb.RunResponse(items=items, summary=summary)
        return frame.join(answer.SerializeToString(), payloads)

    def _infer(self, messages: Iterator[bytes], context: Context) -> Iterator[bytes]:
        first, _ = frame.read_message(next(messages), pb.InferRequest(), FieldInvalidError)
        outbox = Outbox()

        def emit(port: str, sequence: int, value: Value) -> None:
            for chunk in chunks_of(port, sequence, *encode(value)):
                outbox.put(pb.InferResponse(item=chunk.item), chunk.payload)

        def grant(port: str, items: int, size_bytes: int) -> None:
            credit = pb.InputCredit(port=port, items=items, size_bytes=size_bytes)
            outbox.put(pb.InferResponse(input_credit=credit))

        with self._admitted(first.open) as admitted:
            exchange = self._exchange(admitted, emit, grant)
            _at_end(context, exchange.cancel)
            outbox.put(_accepted(admitted))
            _start(lambda: _read(messages, exchange, outbox))
            _start(lambda: _finish(self._carry_out(admitted, exchange), exchange, outbox))
            try:
                yield from outbox
            finally:
                # Also reached when the caller has gone: then nobody takes what is answered.
                exchange.cancel()

    @staticmethod
    def _exchange(
        admitted: Admitted,
        emit: Callable[[str, int, Value], None],
        grant: Callable[[str, int, int], None],
    ) -> Exchange:
        return Exchange(
            admitted.request,
            admitted.pipeline,
            emit=emit,
            grant=grant,
            scripted=admitted.scripted,
        )

    def _carry_out(self, admitted: Admitted, exchange: Exchange) -> "Outcome":
        """Runs the function; returns the summary, or how it failed."""
        began = time.monotonic()
        try:
            if admitted.hold is not None:
                admitted.hold.keep(admitted.request)
            exchange.run()
        except StageError as error:
            return error
        total = to_duration(time.monotonic() - began)
        stage = pb.StageReceipt(
            stage_id=admitted.request.pipeline,
            worker_id="fake",
            device="cpu",
            verdict=capability_pb2.VERDICT_FULL,
            grade=capability_pb2.GRADE_B,
            total=total,
        )
        receipt = pb.Receipt(request_id=admitted.request.request_id, total=total, stages=[stage])
        return pb.InferSummary(receipt=receipt)

    @contextlib.contextmanager
    def _admitted(self, opening: pb.InferOpen) -> Iterator[Admitted]:
        admitted = self._desk.admit(opening)
        has_failed = True
        try:
            yield admitted
            has_failed = False
        finally:
            self._desk.settle(admitted, has_failed=has_failed)

    def _get_placement(self, _message: bytes, _context: Context) -> bytes:
        return pb.GetPlacementResponse(state=self._state()).SerializeToString()

    def _watch_state(self, _message: bytes, context: Context) -> Iterator[bytes]:
        yield pb.WatchStateResponse(state=self._state()).SerializeToString()
        gone = threading.Event()
        _at_end(context, gone.set)
        # Nothing ever changes here.
        gone.wait()

    def _open_session(self, message: bytes, _context: Context) -> bytes:
        request = pb.OpenSessionRequest.FromString(message)
        has_time = request.HasField("idle_timeout")
        seconds = to_seconds(request.idle_timeout) if has_time else None
        session_id, session = self._desk.open_session(request.pipeline, seconds)
        answer = pb.OpenSessionResponse(
            session_id=session_id, lease=to_duration(session.lease_seconds)
        )
        return answer.SerializeToString()

    def _renew_session(self, message: bytes, _context: Context) -> bytes:
        session = self._desk.session(pb.RenewSessionRequest.FromString(message).session_id)
        return pb.RenewSessionResponse(lease=to_duration(session.lease_seconds)).SerializeToString()

    def _close_session(self, message: bytes, _context: Context) -> bytes:
        self._desk.close_session(pb.CloseSessionRequest.FromString(message).session_id)
        return pb.CloseSessionResponse().SerializeToString()

    def _state(self) -> pb.CoordinatorState:
        return pb.CoordinatorState(
            plan_name="fake",
            phase=pb.PHASE_READY,
            pipelines=[
                pb.PipelineState(
                    pipeline=name,
                    inputs=map(ports.to_message, pipeline.input_ports.values()),
                    outputs=map(ports.to_message, pipeline.output_ports.values()),
                    is_ready=True,
                )
                for name, pipeline in self._desk.pipelines.items()
            ],
        )

    # --- who may ask, and how a failure is told ---

    def _guarded(self, answer: Callable[[Any, Context], bytes]) -> Callable[[Any, Context], bytes]:
        def call(request: Any, context: Context) -> bytes:
            with self._told(context):
                return answer(request, context)

        return call

    def _guarded_stream(
        self, answer: Callable[[Any, Context], Iterator[bytes]]
    ) -> Callable[[Any, Context], Iterator[bytes]]:
        def call(request: Any, context: Context) -> Iterator[bytes]:
            with self._told(context):
                yield from answer(request, context)

        return call

    @contextlib.contextmanager
    def _told(self, context: Context) -> Iterator[None]:
        try:
            given = dict(context.invocation_metadata()).get("authorization", "")
            if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
                raise TokenInvalidError("the token is wrong; use that of the fake coordinator")
            yield
        except StageError as error:
            trailer = status.to_message(error).SerializeToString()
            context.set_trailing_metadata(((status.TRAILER, trailer),))
            context.abort(status.GRPC_CODES[error.code], error.reason)


def _at_end(context: Context, work: Callable[[], None]) -> None:
    """Does something when a call ends, or at once when it has ended."""
    if not context.add_callback(work):
        work()


def _start(work: Callable[[], None]) -> None:
    # A function that waits for ever must not keep the program of its test from ending.
    threading.Thread(target=work, daemon=True, name="stagewire-fake").start()


def _finish(outcome: Outcome, exchange: Exchange, outbox: Outbox) -> None:
    if isinstance(outcome, StageError):
        outbox.end(outcome)
        return
    for port, count in exchange.counts.items():
        ended = pb.EndOfOutput(port=port, item_count=count)
        outbox.put(pb.InferResponse(end_of_output=ended))
    outbox.put(pb.InferResponse(summary=outcome))
    outbox.end(None)


def _accepted(admitted: Admitted) -> pb.InferResponse:
    credits = [
        pb.InputCredit(port=port, items=WINDOW_ITEMS, size_bytes=WINDOW_BYTES)
        for port in admitted.pipeline.input_ports
    ]
    accepted = pb.InferAccepted(request_id=admitted.request.request_id, credits=credits)
    return pb.InferResponse(accepted=accepted)


def _read(messages: Iterator[bytes], exchange: Exchange, outbox: Outbox) -> None:
    """Takes what the caller sends; its end, orderly or not, may come at any time."""
    try:
        for message in messages:
            request, payload = frame.read_message(message, pb.InferRequest(), FieldInvalidError)
            kind = request.WhichOneof("message")
            if kind == "item":
                exchange.take(request.item, payload)
            elif kind == "end_of_input":
                exchange.end(request.end_of_input.port)
            elif kind == "output_credit":
                more = request.output_credit
                exchange.grant_output(more.port, more.items, more.size_bytes)
            else:
                raise FieldInvalidError("a message of Infer is empty or opens a second time")
    except StageError as error:
        outbox.end(error)
    except grpc.RpcError:
        # The caller has cancelled the call.
        exchange.cancel()
    finally:
        if not exchange.have_inputs_ended:
            exchange.cancel()
