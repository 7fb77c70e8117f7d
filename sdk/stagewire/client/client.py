"""The blocking client: one connection to one coordinator."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from stagewire import channel, frame, status
from stagewire.chunks import whole_item
from stagewire.client import receipt, state
from stagewire.client.call import Call, Source
from stagewire.client.given import Deadline, Given, check_seconds, needs_port, typed
from stagewire.client.incoming import Outputs
from stagewire.client.result import Result
from stagewire.endpoint import default_state_folder, explain_silence, read_endpoint
from stagewire.errors import (
    CoordinatorUnreachableError,
    DeadlineExceededError,
    FieldInvalidError,
    PayloadCorruptError,
    PipelineUnknownError,
    StageError,
)
from stagewire.limits import MESSAGE_BYTES
from stagewire.ports import Port
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb

_SERVICE: Final = "/stagewire.v1.CoordinatorService/"
_STATE_SECONDS: Final = 10.0


class Client:
    """Runs pipelines of one coordinator. May be used by several threads; close it at the end.

    `explain` says more of a coordinator that does not answer, where more can be known of it.
    """

    def __init__(
        self,
        address: str,
        token: str,
        *,
        explain: Callable[[], CoordinatorUnreachableError] | None = None,
    ) -> None:
        self._explain = explain
        self._ports: Mapping[str, Mapping[str, Port]] | None = None
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
        inputs: Mapping[str, Given],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
    ) -> Result:
        """Runs a pipeline on one item an input and returns everything that came out.

        Numbers of Python, and lists of them, take the element type of their input.

        Inputs that exceed one message go by `infer`, unseen. Outputs that exceed one message do so
        only together with such inputs; use `infer` where they may.

        Raises:
            FieldInvalidError: an input is unknown or has no wire type, or `timeout` is no time.
            TensorMismatchError: an input is missing, or not what its port takes.
            MessageTooBigError: a tensor is over its limit, or the outputs exceed one message.
            DeadlineExceededError: `timeout`, in seconds, or a deadline of the plan passed.
            CoordinatorUnreachableError: no coordinator answers.
            StageError: the request failed.
        """
        deadline = Deadline(timeout)
        values = {
            port: self._typed(pipeline, port, given, deadline) for port, given in inputs.items()
        }
        request = pb.RunRequest(open=_opening(pipeline, request_id, outputs))
        payloads = []
        offset = 0
        for port, value in values.items():
            descriptor, payload = encode(value)
            request.items.append(whole_item(port, 0, descriptor, payload, offset))
            payloads.append(payload)
            offset += payload.nbytes
            if offset + request.ByteSize() > MESSAGE_BYTES - frame.OVERHEAD_BYTES:
                return self._run_in_chunks(request.open, values, deadline)
        with self._failures():
            message: bytes = self._run(
                frame.join(request.SerializeToString(), payloads),
                timeout=deadline.seconds_left(),
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

        Raises:
            FieldInvalidError: `timeout` is no time.
        """
        opening = _opening(pipeline, request_id, outputs)
        return self._call(opening, inputs or {}, check_seconds("timeout", timeout))

    def placement(self, timeout: float = _STATE_SECONDS) -> state.CoordinatorState:
        """Returns what runs where, and why.

        Raises:
            FieldInvalidError: `timeout` is no time.
            CoordinatorUnreachableError: no coordinator answers, or not in time.
            StageError: the call failed.
        """
        seconds = check_seconds("timeout", timeout)
        try:
            return self._state(seconds)
        except DeadlineExceededError:
            # It decides nothing and waits for nothing: one that runs would have answered.
            raise self._unreachable(f"no answer came within {seconds:g} s") from None

    def watch(self, timeout: float | None = None) -> Iterator[state.CoordinatorState]:
        """Iterates over the state now and after every change; closing the iterator ends it.

        Raises:
            FieldInvalidError: `timeout` is no time; said before anything is taken.
            CoordinatorUnreachableError: no coordinator answers, or it went away.
            StageError: the call failed.
        """
        return self._watch(check_seconds("timeout", timeout))

    def _watch(self, timeout: float | None) -> Iterator[state.CoordinatorState]:
        with self._failures():
            # What gRPC returns has no public type that can be cancelled, hence Any.
            stream: Any = self._watch_state(
                pb.WatchStateRequest(), timeout=timeout, metadata=self._metadata
            )
            try:
                for response in stream:
                    yield state.from_message(response.state)
            finally:
                stream.cancel()

    def _state(self, timeout: float | None) -> state.CoordinatorState:
        with self._failures():
            response: pb.GetPlacementResponse = self._get_placement(
                pb.GetPlacementRequest(), timeout=timeout, metadata=self._metadata
            )
            return state.from_message(response.state)

    def _typed(self, pipeline: str, port: str, given: Given, deadline: Deadline) -> Value:
        """Returns what was given for a port as a value, asking for the port where that matters."""
        if not needs_port(given):
            # What has no type of the wire at all is refused when it is encoded.
            return given  # type: ignore[return-value]
        ports = self._inputs_of(pipeline, deadline)
        if ports is not None and port in ports:
            return typed(ports[port], given)
        if isinstance(given, np.generic):
            # It has a type: the coordinator says what is wrong with the name.
            return given  # type: ignore[return-value]
        if ports is None:
            raise PipelineUnknownError(f"the plan has no pipeline {pipeline!r}", pipeline=pipeline)
        raise FieldInvalidError(
            f"the pipeline has no input {port!r}; it has {', '.join(ports) or 'none'}", port=port
        )

    def _inputs_of(self, pipeline: str, deadline: Deadline) -> Mapping[str, Port] | None:
        """Returns the inputs of a pipeline. A coordinator keeps its plan: it is asked once."""
        if self._ports is None:
            left = deadline.seconds_left()
            answer = self.placement() if left is None else self._state(left)
            self._ports = {
                item.pipeline: {port.name: port for port in item.inputs}
                for item in answer.pipelines
            }
        return self._ports.get(pipeline)

    def _call(
        self, opening: pb.InferOpen, sources: Mapping[str, Source], timeout: float | None
    ) -> Call:
        return Call(
            partial(self._infer, timeout=timeout, metadata=self._metadata),
            pb.InferRequest(open=opening).SerializeToString(),
            sources,
            typed=lambda port, given: self._typed(opening.pipeline, port, given, Deadline(timeout)),
            failure_of=self._failure,
        )

    def _run_in_chunks(
        self, opening: pb.InferOpen, inputs: Mapping[str, Value], deadline: Deadline
    ) -> Result:
        items: dict[str, list[Value]] = {}
        with self._call(opening, inputs, deadline.seconds_left()) as call:
            # An input that is missing ends without an item, which the coordinator refuses.
            call.end()
            for output in call:
                items.setdefault(output.port, []).append(output.value)
            return Result(items, call.receipt)

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except grpc.RpcError as error:
            raise self._failure(error) from None
        except DecodeError:
            raise PayloadCorruptError("a message of the coordinator cannot be read") from None

    def _failure(self, error: grpc.RpcError) -> StageError:
        failure = status.from_rpc_error(error)
        if isinstance(failure, CoordinatorUnreachableError):
            return self._unreachable(failure.message)
        return failure

    def _unreachable(self, message: str) -> CoordinatorUnreachableError:
        return CoordinatorUnreachableError(message) if self._explain is None else self._explain()


def connect(state: Path | None = None, plan: str | None = None) -> Client:
    """Returns a client of the coordinator that runs on this machine; connects when first used.

    `state` is its state folder, by default the user's own. `plan` is the name of the plan that it
    must run.

    Raises:
        CoordinatorUnreachableError: none runs there, or it runs another plan.
        PathForbiddenError: the endpoint file is not closed to other users.
    """
    folder = default_state_folder() if state is None else Path(state)
    endpoint = read_endpoint(folder)
    if plan is not None and plan != endpoint.plan:
        raise CoordinatorUnreachableError(
            f"the coordinator there runs the plan {endpoint.plan!r}, not {plan!r};"
            " name the state folder of the other one",
            plan=endpoint.plan,
        )
    return Client(
        endpoint.address, endpoint.token, explain=partial(explain_silence, folder, endpoint)
    )


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
