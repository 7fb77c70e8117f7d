"""One ONNX Runtime session, with threads and providers that are stated, not guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ortkit.external import check_external_files
from ortkit.graph import ELEMENT_TYPES, GraphPort, check_fed
from stagewire.errors import (
    EnvironmentBrokenError,
    FormatUnsupportedError,
    LoadFailedError,
)
from stagewire.tensor import Value
from stagewire.worker.order import library_text

CPU_PROVIDER: Final = "CPUExecutionProvider"
_SPINNING: Final = ("session.intra_op.allow_spinning", "session.inter_op.allow_spinning")
_LOG_FATAL: Final = 4
"""Errors are raised; printed as well they would only fill the log."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Everything about a session that its library would otherwise choose by itself."""

    intra_op_threads: int = 1
    inter_op_threads: int = 1
    allow_spinning: bool = False
    """Whether idle threads burn their core; never right where several workers share the cores."""
    providers: tuple[str, ...] = (CPU_PROVIDER,)
    """Execution providers in order of preference, complete: none is added."""
    keeps_memory: bool = False
    """Whether the session keeps the memory of its largest run for the next one: a fifth quicker,
    but what one long item took is then held until the session closes."""
    seed: int | None = None
    """Start of the random operators; the sequence of results then repeats from load to load."""


def open_session(
    model: Path, files: Mapping[str, Path], settings: SessionSettings | None = None
) -> "Session":
    """Opens a model whose file, and the files that it refers to, belong to one artifact.

    Raises:
        EnvironmentBrokenError: ONNX Runtime cannot be imported.
        FormatUnsupportedError: the file is not an ONNX model.
        PathForbiddenError: the model refers to a file outside its artifact.
        LoadFailedError: ONNX Runtime refuses the model or a provider.
    """
    settings = settings or SessionSettings()
    check_external_files(model, files)
    runtime = _import_runtime()
    missing = [name for name in settings.providers if name not in runtime.get_available_providers()]
    if missing:
        raise LoadFailedError(
            f"this ONNX Runtime has no {', '.join(missing)};"
            f" it has {', '.join(runtime.get_available_providers())}"
        )
    options = runtime.SessionOptions()
    options.intra_op_num_threads = settings.intra_op_threads
    options.inter_op_num_threads = settings.inter_op_threads
    options.log_severity_level = _LOG_FATAL
    options.enable_cpu_mem_arena = settings.keeps_memory
    options.enable_mem_pattern = settings.keeps_memory
    for key in _SPINNING:
        options.add_session_config_entry(key, "1" if settings.allow_spinning else "0")
    if settings.seed is not None:
        # Of the whole process, and read when the kernels of a session are made.
        runtime.set_seed(settings.seed)
    errors = _errors()
    try:
        session = runtime.InferenceSession(
            str(model), sess_options=options, providers=list(settings.providers)
        )
    except errors.not_a_model as error:
        raise FormatUnsupportedError(f"{model.name} is not an ONNX model") from error
    except errors.every as error:
        raise LoadFailedError(
            f"ONNX Runtime refuses {model.name}: {library_text(error, model)}"
        ) from error
    opened = list(session.get_providers())
    if opened[: len(settings.providers)] != list(settings.providers):
        raise LoadFailedError(
            f"ONNX Runtime opened {model.name} on {', '.join(opened)}"
            f" instead of {', '.join(settings.providers)}"
        )
    return Session(session)


class Session:
    """An open session; runs from any thread."""

    def __init__(self, session: Any) -> None:  # ONNX Runtime has no complete types
        self._session = session
        self.inputs: tuple[GraphPort, ...] = _graph_ports(session.get_inputs())
        self.outputs: tuple[GraphPort, ...] = _graph_ports(session.get_outputs())

    @property
    def library_session(self) -> Any:  # handed to libraries that want ONNX Runtime's own object
        """ONNX Runtime's own session."""
        return self._session

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads, spinning and providers in force, read back from the session."""
        options = self._session.get_session_options()
        return {
            "onnxruntime.intra_op_num_threads": str(options.intra_op_num_threads),
            "onnxruntime.inter_op_num_threads": str(options.inter_op_num_threads),
            **{
                f"onnxruntime.{key.removeprefix('session.')}": options.get_session_config_entry(key)
                for key in _SPINNING
            },
            "onnxruntime.providers": ",".join(self._session.get_providers()),
        }

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Value]) -> list[Value]:
        """Runs the graph once and returns the named outputs in their order.

        What ONNX Runtime raises passes as it is: its text is for the log of the host, not for a
        client.

        Raises:
            TensorMismatchError: an input does not have the type or shape of the graph's.
        """
        for port in self.inputs:
            if port.name in feeds:
                check_fed(port, feeds[port.name])
        results = self._session.run(
            list(outputs), {name: _fed(value) for name, value in feeds.items()}
        )
        return [_returned(result) for result in results]

    def close(self) -> None:
        """Frees the session; it cannot run afterwards."""
        self._session = None


@dataclass(frozen=True, slots=True)
class _Errors:
    """ONNX Runtime's own exception classes, which share no base of their own."""

    not_a_model: tuple[type[Exception], ...]
    every: tuple[type[Exception], ...]


def _errors() -> _Errors:
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    every = tuple(
        item
        for item in vars(state).values()
        if isinstance(item, type) and issubclass(item, Exception)
    )
    return _Errors(
        not_a_model=(state.InvalidProtobuf,),
        # The binding raises plain ones for arguments that it cannot convert.
        every=(*every, RuntimeError, ValueError),
    )


def _import_runtime() -> Any:  # ONNX Runtime has no complete types
    try:
        import onnxruntime
    except ImportError as error:
        raise EnvironmentBrokenError(
            f"onnxruntime cannot be imported: {library_text(error)}"
        ) from error
    # Once more than the environment does: it collects, and sends, what it runs and where.
    onnxruntime.disable_telemetry_events()
    return onnxruntime


def _graph_ports(nodes: Sequence[Any]) -> tuple[GraphPort, ...]:  # NodeArg of ONNX Runtime
    return tuple(
        GraphPort(
            name=node.name,
            data_type=ELEMENT_TYPES.get(node.type),
            type_name=node.type,
            shape=tuple(
                extent if isinstance(extent, int) else (extent or "") for extent in node.shape or ()
            ),
        )
        for node in nodes
    )


def _fed(value: Value) -> Value:
    return np.array(value, dtype=object) if isinstance(value, str) else value


def _returned(result: Any) -> Value:  # an array, by the check of the ports
    if result.dtype == object and result.ndim == 0:
        return str(result[()])
    array: Value = result
    return array
