"""Environment variables of workers."""

import os
from collections.abc import Mapping
from typing import Final

_PASSED_ON: Final = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
)
_SILENCED: Final = {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
"""Workers tell nobody anything and fetch nothing: ONNX Runtime would send what it runs on."""
_THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def worker_environment(thread_count: int, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns all variables that a worker sees.

    Libraries that choose their own thread count would take every core in every worker.
    """
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    threads = {name: str(thread_count) for name in _THREAD_VARIABLES}
    return passed_on | _SILENCED | threads | dict(extra or {})
