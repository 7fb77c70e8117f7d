"""What one request says to the coordinator, and what a unary answer holds."""

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from google.protobuf.message import DecodeError

from stagewire import frame
from stagewire.chunks import whole_item
from stagewire.client import receipt
from stagewire.client.core.incoming import Outputs
from stagewire.client.core.retrying import check_replayable
from stagewire.client.given import Given, typed
from stagewire.client.result import Result
from stagewire.client.state import CoordinatorState
from stagewire.errors import FieldInvalidError, PayloadCorruptError, PipelineUnknownError
from stagewire.limits import MESSAGE_BYTES
from stagewire.ports import Port
from stagewire.tensor import Value, encode
from stagewire.v1 import coordinator_pb2 as pb

Source: TypeAlias = "Value | bool | int | float | np.generic | Iterable[Given]"
"""Items of one input: a single value, or any iterable of values."""
AsyncSource: TypeAlias = "Source | AsyncIterable[Given]"
"""The same, or an asynchronous iterable of values."""
Ports: TypeAlias = Mapping[str, Mapping[str, Port]]
"""Inputs of each pipeline."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a caller asks for, less the values."""

    pipeline: str
    request_id: str = ""
    outputs: tuple[str, ...] = ()
    session_id: str = ""
    is_idempotent: bool = False

    def opening(self, attempt: int) -> pb.InferOpen:
        """Returns the first message of one attempt."""
        return pb.InferOpen(
            pipeline=self.pipeline,
            request_id=self.request_id,
            outputs=self.outputs,
            session_id=self.session_id,
            attempt=attempt if self.is_idempotent else 0,
            idempotent=self.is_idempotent,
        )


def check_sources(order: Order, sources: Mapping[str, Any]) -> None:
    """Checks that the inputs of a request can be sent as often as it may run.

    Raises:
        FieldInvalidError: one can be read only once; it names the input.
    """
    if order.is_idempotent:
        for port, source in sources.items():
            check_replayable(port, source)


def check_sendable(order: Order) -> None:
    """Checks that a request takes items one by one.

    Raises:
        FieldInvalidError: it may be sent again, so that it must have all of them before.
    """
    if order.is_idempotent:
        raise FieldInvalidError(
            "an idempotent request may be sent again, so it takes all of its inputs from `infer`,"
            " as values or lists of values"
        )


def is_single(source: object) -> bool:
    """Whether what was given for an input is one value, not several."""
    return isinstance(source, (str, bytes, np.ndarray, np.generic, bool, int, float))


def ports_of(state: CoordinatorState) -> Ports:
    """Returns the inputs of every pipeline. A coordinator keeps its plan: it is asked once."""
    return {item.pipeline: {port.name: port for port in item.inputs} for item in state.pipelines}


def value_of(pipeline: str, port: str, given: Given, ports: Ports) -> Value:
    """Returns what was given for a port as a value, where `needs_port` says that it depends on it.

    Raises:
        StageError: there is no such port, or it cannot hold what was given.
    """
    inputs = ports.get(pipeline)
    if inputs is not None and port in inputs:
        return typed(inputs[port], given)
    if isinstance(given, np.generic):
        # It has a type: the coordinator says what is wrong with the name.
        return given  # type: ignore[return-value]
    if inputs is None:
        raise PipelineUnknownError(f"the plan has no pipeline {pipeline!r}", pipeline=pipeline)
    raise FieldInvalidError(
        f"the pipeline has no input {port!r}; it has {', '.join(inputs) or 'none'}", port=port
    )


class UnaryRequest:
    """One `Run` with its values encoded, from which each attempt gets its message."""

    def __init__(self, order: Order, values: Mapping[str, Value]) -> None:
        encoded = {port: encode(value) for port, value in values.items()}
        self._payloads = [payload for _, payload in encoded.values()]
        self._request = pb.RunRequest(open=order.opening(1))
        self.fits = False
        """Whether it can go as one message."""
        size_bytes = sum(payload.nbytes for payload in self._payloads)
        if size_bytes > MESSAGE_BYTES:
            return
        offset = 0
        for port, (descriptor, payload) in encoded.items():
            self._request.items.append(whole_item(port, 0, descriptor, payload, offset))
            offset += payload.nbytes
        header_bytes = self._request.ByteSize() + frame.OVERHEAD_BYTES
        self.fits = size_bytes + header_bytes <= MESSAGE_BYTES

    def message(self, attempt: int) -> bytes:
        """Returns the message of one attempt."""
        if attempt > 1:
            self._request.open.attempt = attempt
        return frame.join(self._request.SerializeToString(), self._payloads)


def result_of(message: bytes, attempts: int) -> Result:
    """Returns what a unary answer holds.

    Raises:
        PayloadCorruptError: it is damaged.
    """
    header, payload = frame.split(message)
    try:
        response = pb.RunResponse.FromString(bytes(header))
    except DecodeError:
        raise PayloadCorruptError("a message of the coordinator cannot be read") from None
    assembled = Outputs()
    items: dict[str, list[Value]] = {}
    for item in response.items:
        received = assembled.accept(item, payload)
        if received is not None:
            items.setdefault(received.port, []).append(received.value())
    assembled.finish()
    return Result(items, receipt.from_message(response.summary.receipt), attempts)


def gathered(outputs: Sequence[tuple[str, Value]], took: receipt.Receipt, attempts: int) -> Result:
    """Returns the result of a request whose outputs were taken one by one."""
    items: dict[str, list[Value]] = {}
    for port, value in outputs:
        items.setdefault(port, []).append(value)
    return Result(items, took, attempts)
