"""An execution in memory: a stage runs on given items and its outputs are kept.

Used to prove a stage before it is ready, and by the conformance suite of executors.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from stagewire.credit import Credit
from stagewire.errors import OutputContractError
from stagewire.tensor import Value, encode
from stagewire.worker.executor import ExecutionEnded, StageOrder


class Rehearsal:
    """Implements `Execution` without wire or threads."""

    def __init__(
        self,
        order: StageOrder,
        inputs: Mapping[str, Sequence[Value]],
        credit: Credit,
        *,
        cancel_after_steps: int | None = None,
    ) -> None:
        self._order = order
        self._inputs = {port.name: list(inputs.get(port.name, ())) for port in order.inputs}
        self._credit = credit
        self._steps_left = math.inf if cancel_after_steps is None else cancel_after_steps
        self._ports = {port.name: port for port in order.outputs}
        self.outputs: dict[str, list[Value]] = {port.name: [] for port in order.outputs}

    @property
    def remaining_seconds(self) -> float:
        """Infinite: a rehearsal has no deadline."""
        return math.inf

    def receive(self, port: str) -> Value | None:
        """Returns the next item of an input port; None after the last one."""
        self.check()
        waiting = self._inputs[port]
        if not waiting:
            return None
        descriptor, _ = encode(waiting[0])
        next(item for item in self._order.inputs if item.name == port).check(descriptor)
        return waiting.pop(0)

    def items(self, port: str) -> Iterator[Value]:
        """Iterates over `receive` until the end of the port."""
        while (value := self.receive(port)) is not None:
            yield value

    def send(self, port: str, value: Value) -> None:
        """Keeps one output item."""
        self.check()
        rules = self._ports.get(port)
        if rules is None:
            raise OutputContractError(f"the stage has no output port {port!r}")
        descriptor, _ = encode(value)
        rules.check(descriptor)
        if not rules.is_stream and self.outputs[port]:
            raise OutputContractError(f"port {port!r} is no stream and got a second item")
        if not self._credit.is_open:
            raise OutputContractError(f"port {port!r} sent more than its credit")
        self._credit.spend(descriptor.size_bytes)
        self.outputs[port].append(value)

    def check(self) -> None:
        """Returns until the steps that were allowed are used up."""
        if self._steps_left <= 0:
            raise ExecutionEnded("cancelled")
        self._steps_left -= 1

    def conclude(self) -> str:
        """Checks that every output port got what it must; returns a sentence about it."""
        for name, rules in self._ports.items():
            if not rules.is_stream and not self.outputs[name]:
                raise OutputContractError(f"the stage ended without an item on {name!r}")
        counts = ", ".join(f"{len(values)} on {name}" for name, values in self.outputs.items())
        return f"items out: {counts or 'none'}"
