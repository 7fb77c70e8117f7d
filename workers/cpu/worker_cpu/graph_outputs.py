"""Which outputs of a graph a stage sends, some of them reduced to where they are largest.

A recogniser gives one score for each of many thousand classes at each step, of which the next stage
wants the best only. Option `largest` names such outputs. In place of one that is called `scores`
the stage has `scores_index` and `scores_value`: along its last dimension, where it is largest, and
how large it is there. That spares the way of the rest between the stages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ortkit import GraphPort
from stagewire.errors import FieldInvalidError, OutputContractError
from stagewire.tensor import Array, DataType, Value
from stagewire.worker.executor import StageOrder

_INDEX: Final = "_index"
_VALUE: Final = "_value"
_ORDERED: Final = (
    *(DataType.FLOAT16, DataType.FLOAT32, DataType.FLOAT64),
    *(DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64),
    *(DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64),
)


class GraphOutputs:
    """Turns what a graph returns into the items of a stage's ports."""

    def __init__(
        self, order: StageOrder, outputs: Sequence[GraphPort], largest: Sequence[str]
    ) -> None:
        """Takes the outputs of a graph and the names of those to reduce.

        Raises:
            FieldInvalidError: one of the names is not that of an output that can be reduced.
        """
        known = {port.name: port for port in outputs}
        for name in largest:
            _check_reducible(order, name, known)
        self._largest = dict.fromkeys(largest)
        self.ports: tuple[GraphPort, ...] = tuple(
            port
            for output in outputs
            for port in (_reduced(output) if output.name in self._largest else (output,))
        )
        """What the ports of the stage are compared with."""
        wanted = {port.name for port in order.outputs}
        self.names: tuple[str, ...] = tuple(
            name for name in known if wanted & set(self._ports_of(name))
        )
        """Outputs that the graph has to compute."""
        self._wanted = wanted

    def _ports_of(self, output: str) -> tuple[str, ...]:
        return (output + _INDEX, output + _VALUE) if output in self._largest else (output,)

    def items(self, values: Sequence[Value]) -> Mapping[str, Value]:
        """Returns the items by port for the values of `names`.

        Raises:
            OutputContractError: an output to reduce has nothing along its last dimension.
        """
        found: dict[str, Value] = {}
        for name, value in zip(self.names, values, strict=True):
            if name in self._largest:
                found |= zip(
                    self._ports_of(name), _largest_of(name, np.asarray(value)), strict=True
                )
            else:
                found[name] = value
        return {port: item for port, item in found.items() if port in self._wanted}


def _check_reducible(order: StageOrder, name: str, known: Mapping[str, GraphPort]) -> None:
    port = known.get(name)
    if port is None:
        problem = f"the graph has no output {name!r}; it has {', '.join(sorted(known))}"
    elif port.data_type not in _ORDERED or not port.shape:
        problem = (
            f"output {name!r} is {port.type_name} of {len(port.shape)} dimensions; name a tensor"
        )
    elif taken := {name + _INDEX, name + _VALUE} & set(known):
        problem = f"the graph has an output {min(taken)!r} of its own; leave out {name!r}"
    else:
        return
    raise FieldInvalidError(
        f"stage {order.stage_id}: option 'largest': {problem}",
        stage=order.stage_id,
        option="largest",
    )


def _reduced(port: GraphPort) -> tuple[GraphPort, GraphPort]:
    rest = replace(port, name=port.name + _VALUE, shape=port.shape[:-1])
    index = replace(
        rest, name=port.name + _INDEX, data_type=DataType.INT64, type_name="tensor(int64)"
    )
    return index, rest


def _largest_of(name: str, values: Array) -> tuple[Array, Array]:
    if not values.shape[-1]:
        raise OutputContractError(f"output {name!r} has nothing along its last dimension")
    index = values.argmax(axis=-1, keepdims=True)
    largest = np.take_along_axis(values, index, axis=-1)
    return index[..., 0].astype(np.int64, copy=False), largest[..., 0]
