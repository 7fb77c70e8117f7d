"""The blocking client: one connection to one coordinator."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from stagewire import channel, frame, status
from stagewire.client import receipt, state
from stagewire.client.call import Call, Source
from stagewire.client.incoming import Outputs
from stagewire.client.result import Result
from stagewire.endpoint import default_state_folder, read_endpoint
from stagewire.errors import CoordinatorUnreachableError, PayloadCorruptError
from stagewire.items import whole_item
from stagewire.limits import MESSAGE_BYTES
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb

_SERVICE: Final = "/stagewire.v1.CoordinatorService/"
_STATE_SECONDS: Final = 10.0


class Client:
    """Runs pipelines of one coordinator. May be used by several threads; close it at the end."""

    def __init__(self, address: str, token: str) -> None:
        self._channel = channel.open_channel(address)
        self._metadata = (("authorization", f"Bearer {token}"),)
        # Messages pass as bytes: a payload is joined and split here, never by protobuf.
        self._run = self._channel.unary_unary(f"{_SERVICE}Run", None, None)
        self._infer = self._channel.stream_stream(f"{_SERVICE}Infer", None, None)
        self._get_placement = self._channel.unary_unary(
            f"{_SERVICE}GetPlacement",
            pb.GetPlacementRequest.SerializeToString,
            pb.GetPlacementResponse.FromString,
        )
        self._watch_state = self._channel.unary_stream(
            f"{_SERVICE}WatchState",
            pb.WatchStateRequest.SerializeToString,
            pb.WatchStateResponse.FromString,
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; calls that still run are cancelled."""
        self._channel.close()

    def run(
        self,
        pipeline: str,
        inputs: Mapping[str, Value],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
    ) -> Result:
        """Runs a pipeline on one item an input and returns everything that came out.

        Inputs that exceed one message go by `infer`, unseen. Outputs that exceed one message do so
        only together with such inputs; use `infer` where they may.

        Raises:
            FieldInvalidError: an input is missing, unknown, or has no wire type.
            MessageTooBigError: a tensor is over its limit, or the outputs exceed one message.
            DeadlineExceededError: `timeout`, in seconds, or a deadline of the plan passed.
            CoordinatorUnreachableError: no coordinator answers.
            StageError: the request failed.
        """
        request = pb.RunRequest(open=_opening(pipeline, request_id, outputs))
        payloads = []
        offset = 0
        for port, value in inputs.items():
            descriptor, payload = encode(value)
            request.items.append(whole_item(port, 0, descriptor, payload, offset))
            payloads.append(payload)
            offset += payload.nbytes
            if offset + request.ByteSize() > MESSAGE_BYTES - frame.OVERHEAD_BYTES:
                return self._run_in_chunks(request.open, inputs, timeout)
        with _failures():
            message: bytes = self._run(
                frame.join(request.SerializeToString(), payloads),
                timeout=timeout,
                metadata=self._metadata,
            )
            return _result(message)

    def infer(
        self,
        pipeline: str,
        inputs: Mapping[str, Source] | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
    ) -> Call:
        """Returns a call whose items go out and come in at the same time; it starts when entered.

        Each of `inputs` is a value or an iterable of values: threads of the call send them, and end
        the input after the last. The others are for `Call.send` and `Call.end`.
        """
        return self._call(_opening(pipeline, request_id, outputs), inputs or {}, timeout)

    def placement(self, timeout: float = _STATE_SECONDS) -> state.CoordinatorState:
        """Returns what runs where, and why.

        Raises:
            CoordinatorUnreachableError: no coordinator answers.
            StageError: the call failed.
        """
        with _failures():
            response: pb.GetPlacementResponse = self._get_placement(
                pb.GetPlacementRequest(), timeout=timeout, metadata=self._metadata
            )
            return state.from_message(response.state)

    def watch(self, timeout: float | None = None) -> Iterator[state.CoordinatorState]:
        """Iterates over the state now and after every change; closing the iterator ends it.

        Raises:
            CoordinatorUnreachableError: no coordinator answers, or it went away.
            StageError: the call failed.
        """
        with _failures():
            # What gRPC returns has no public type that can be cancelled, hence Any.
            stream: Any = self._watch_state(
                pb.WatchStateRequest(), timeout=timeout, metadata=self._metadata
            )
            try:
                for response in stream:
                    yield state.from_message(response.state)
            finally:
                stream.cancel()

    def _call(
        self, opening: pb.InferOpen, sources: Mapping[str, Source], timeout: float | None
    ) -> Call:
        start = partial(self._infer, timeout=timeout, metadata=self._metadata)
        return Call(start, pb.InferRequest(open=opening).SerializeToString(), sources)

    def _run_in_chunks(
        self, opening: pb.InferOpen, inputs: Mapping[str, Value], timeout: float | None
    ) -> Result:
        items: dict[str, list[Value]] = {}
        with self._call(opening, inputs, timeout) as call:
            # An input that is missing ends without an item, which the coordinator refuses.
            call.end()
            for output in call:
                items.setdefault(output.port, []).append(output.value)
            return Result(items, call.receipt)


def connect(state: Path | None = None, plan: str | None = None) -> Client:
    """Returns a client of the coordinator that runs on this machine; connects when first used.

    `state` is its state folder, by default the user's own. `plan` is the name of the plan that it
    must run.

    Raises:
        CoordinatorUnreachableError: none has written its endpoint there, or it runs another plan.
        PathForbiddenError: the endpoint file is not closed to other users.
    """
    endpoint = read_endpoint(default_state_folder() if state is None else state)
    if plan is not None and plan != endpoint.plan:
        raise CoordinatorUnreachableError(
            f"the coordinator there runs the plan {endpoint.plan!r}, not {plan!r};"
            " name the state folder of the other one",
            plan=endpoint.plan,
        )
    return Client(endpoint.address, endpoint.token)


def _opening(pipeline: str, request_id: str | None, outputs: Iterable[str] | None) -> pb.InferOpen:
    return pb.InferOpen(pipeline=pipeline, request_id=request_id or "", outputs=outputs or ())


def _result(message: bytes) -> Result:
    header, payload = frame.split(message)
    response = pb.RunResponse.FromString(bytes(header))
    assembled = Outputs()
    items: dict[str, list[Value]] = {}
    for item in response.items:
        received = assembled.accept(item, payload)
        if received is not None:
            items.setdefault(received.port, []).append(received.value())
    assembled.finish()
    return Result(items, receipt.from_message(response.summary.receipt))


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise status.from_rpc_error(error) from None
    except DecodeError:
        raise PayloadCorruptError("a message of the coordinator cannot be read") from None
