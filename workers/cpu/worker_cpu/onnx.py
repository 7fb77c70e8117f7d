"""Executor `onnx`: any ONNX graph, with ports named like its inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from ortkit import Session, SessionSettings, check_order, open_session
from stagewire.errors import TensorMismatchError
from stagewire.ports import Port
from stagewire.tensor import DataType, Value
from stagewire.worker.executor import Capability, Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, check_format, library_capability, single_file
from worker_cpu.graph_outputs import GraphOutputs
from worker_cpu.streams import check_streams, receive_one

FORMATS: Final = ("onnx:fp32", "onnx:fp16", "onnx:a16w8", "onnx:a8w8")

_NUMPY_TYPES: Final = {
    DataType.BOOL: np.bool_,
    DataType.INT8: np.int8,
    DataType.INT16: np.int16,
    DataType.INT32: np.int32,
    DataType.INT64: np.int64,
    DataType.UINT8: np.uint8,
    DataType.UINT16: np.uint16,
    DataType.UINT32: np.uint32,
    DataType.UINT64: np.uint64,
    DataType.FLOAT16: np.float16,
    DataType.FLOAT32: np.float32,
    DataType.FLOAT64: np.float64,
}


class OnnxExecutor:
    """Runs ONNX graphs with ONNX Runtime on the CPU."""

    name = "onnx"

    def describe(self) -> Sequence[Capability]:
        """Says whether ONNX Runtime is installed."""
        return [library_capability(self.name, FORMATS, "onnxruntime", "onnxruntime")]

    def load(self, order: StageOrder, progress: Progress) -> "OnnxStage":
        """Opens the graph and checks the stage's ports against it."""
        check_format(order, FORMATS)
        options = OptionReader(order)
        extents = options.extents("example_extents")
        largest = options.texts("largest", most=16)
        settings = SessionSettings(
            intra_op_threads=order.thread_count,
            keeps_memory=options.flag("keep_memory", default=False),
        )
        options.finish()
        model = single_file(order, ".onnx")
        progress("opening the graph")
        session = open_session(model, order.files, settings)
        outputs = GraphOutputs(order, session.outputs, largest)
        check_order(order, session.inputs, outputs.ports)
        check_streams(order)
        return OnnxStage(order, session, outputs, extents)

    def close(self) -> None:
        """Holds nothing of its own."""


class OnnxStage:
    """One open graph: one run for each set of items, one item from each input port."""

    def __init__(
        self,
        order: StageOrder,
        session: Session,
        outputs: GraphOutputs,
        extents: Mapping[str, int],
    ) -> None:
        self._session = session
        self._inputs = order.inputs
        self._outputs = outputs
        self._extents = extents

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from the session."""
        return self._session.thread_settings

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns zeros; variable extents are 1 or what the option `example_extents` says."""
        return {port.name: [self._zeros(port)] for port in self._inputs}

    def _zeros(self, port: Port) -> Value:
        shape = [
            min(self._extents.get(dimension.name, 1), dimension.max_extent)
            if dimension.name
            else dimension.max_extent
            for dimension in port.dimensions
        ]
        if port.data_type is DataType.UTF8:
            return np.full(shape, "", dtype=object) if shape else ""
        return np.zeros(shape, dtype=_NUMPY_TYPES[port.data_type])

    def run(self, execution: Execution) -> None:
        """Runs the graph until its streams end; the item of a port that is no stream stays."""
        constant: dict[str, Value] = {}
        for port in self._inputs:
            if not port.is_stream:
                constant[port.name] = receive_one(execution, port.name)
        streams = [port.name for port in self._inputs if port.is_stream]
        if not streams:
            self._run_once(execution, constant)
            return
        while (items := self._next_set(execution, streams)) is not None:
            self._run_once(execution, constant | items)

    def _next_set(self, execution: Execution, streams: Sequence[str]) -> dict[str, Value] | None:
        received = {name: execution.receive(name) for name in streams}
        items = {name: value for name, value in received.items() if value is not None}
        if not items:
            return None
        for name in streams:
            if name not in items:
                raise TensorMismatchError(
                    f"port {name!r} ended before {next(iter(items))!r};"
                    " every stream into a graph must have equally many items",
                    port=name,
                )
        return items

    def _run_once(self, execution: Execution, feeds: Mapping[str, Value]) -> None:
        execution.check()
        values = self._session.run(self._outputs.names, feeds)
        for name, item in self._outputs.items(values).items():
            execution.send(name, item)

    def release(self) -> None:
        """Closes the session."""
        self._session.close()
