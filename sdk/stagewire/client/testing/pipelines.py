"""Pipelines that are functions: their ports, their arguments, and what they answer."""

import inspect
import typing
from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from stagewire.client.given import needs_port, typed
from stagewire.descriptor import DataType
from stagewire.errors import FieldInvalidError, StageFaultError
from stagewire.ports import Port
from stagewire.tensor import Value

_TYPES: Final = {
    str: DataType.UTF8,
    bytes: DataType.BYTES,
    bool: DataType.BOOL,
    int: DataType.INT64,
    float: DataType.FLOAT64,
}
_CONTEXT: Final = "request"


@dataclass(frozen=True)
class FakePipeline:
    """A function as a pipeline.

    Each parameter is an input. It gets the one item of it or, where its port is a stream, an
    iterator of the items as they come. Ports come from the annotations (`str`, `bytes`, `bool`,
    `int`, `float`, and `Iterator` of these for streams) unless `inputs` has them; an input without
    annotation takes anything. A parameter `request` gets the `FakeRequest`.

    The function returns a mapping from outputs to values, where a list or an iterator is several
    items; or it is a generator of pairs of output and value, which are sent as they come. Outputs
    are checked where `outputs` has their ports.
    """

    function: Callable[..., Any]
    inputs: Sequence[Port] | None = None
    outputs: Sequence[Port] = ()

    @cached_property
    def input_ports(self) -> Mapping[str, Port]:
        """Ports as they are told to clients."""
        if self.inputs is not None:
            return {port.name: port for port in self.inputs}
        return {name: _port(name, kind) for name, kind in self._kinds.items()}

    @cached_property
    def output_ports(self) -> Mapping[str, Port]:
        """Ports of the outputs that are checked."""
        return {port.name: port for port in self.outputs}

    def is_checked(self, name: str) -> bool:
        """Whether an input has a type of its own."""
        return self.inputs is not None or self._kinds.get(name, Any) is not Any

    @cached_property
    def wants_request(self) -> bool:
        """Whether the function takes the `FakeRequest`."""
        return _CONTEXT in inspect.signature(self.function).parameters

    @cached_property
    def _kinds(self) -> Mapping[str, Any]:  # annotations
        names = [name for name in inspect.signature(self.function).parameters if name != _CONTEXT]
        hints = typing.get_type_hints(self.function) if names else {}
        return {name: hints.get(name, Any) for name in names}

    def call(self, inputs: Mapping[str, Any], request: object) -> Iterator[tuple[str, Value]]:
        """Calls the function; iterates over what it answers, as values of the wire.

        Raises:
            StageFaultError: it answered something else.
        """
        named = {**inputs, _CONTEXT: request} if self.wants_request else inputs
        for output, given in _pairs(self.function(**named)):
            yield output, self._value(output, given)

    def _value(self, output: str, given: Any) -> Value:
        if not needs_port(given):
            value: Value = given
        elif output in self.output_ports:
            value = typed(self.output_ports[output], given)
        else:
            value = np.asarray(given)
        return value


def as_pipeline(name: str, given: "FakePipeline | Callable[..., Any]") -> FakePipeline:
    """Returns a pipeline of what was given for one.

    Raises:
        FieldInvalidError: it is no function, or its ports cannot be read off it.
    """
    pipeline = given if isinstance(given, FakePipeline) else FakePipeline(given)
    try:
        _ = pipeline.input_ports, pipeline.wants_request
    except (TypeError, ValueError, NameError) as error:
        raise FieldInvalidError(
            f"the inputs of pipeline {name!r} cannot be read off {given!r}: {error};"
            " make it a FakePipeline and name them"
        ) from None
    return pipeline


def _port(name: str, kind: Any) -> Port:  # an annotation
    origin = typing.get_origin(kind)
    is_stream = isinstance(origin, type) and issubclass(origin, (Iterable, AsyncIterable))
    element = next(iter(typing.get_args(kind)), Any) if is_stream else kind
    return Port(name, _TYPES.get(element, DataType.FLOAT64), (), is_stream)


def _pairs(answer: Any) -> Iterator[tuple[str, Any]]:  # whatever a function returns
    if answer is None:
        return
    if isinstance(answer, Mapping):
        for output, given in answer.items():
            for item in given if _is_several(given) else (given,):
                yield output, item
        return
    if not isinstance(answer, Iterator):
        raise StageFaultError(
            f"the function answered {answer!r}; it must return a mapping from outputs to values,"
            " or yield pairs of output and value"
        )
    for pair in answer:
        output, given = pair
        yield output, given


def _is_several(given: object) -> bool:
    return isinstance(given, (list, tuple, Iterator))
