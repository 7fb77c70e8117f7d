"""The client: run pipelines from Python, and read files as their inputs.

Names are imported when first used, so that importing this package costs nothing.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewire.client.call import Call, Output
    from stagewire.client.client import Client, connect
    from stagewire.client.media import audio, image, text, write_wav
    from stagewire.client.receipt import (
        Grade,
        HopReceipt,
        Receipt,
        StageReceipt,
        Table,
        Verdict,
    )
    from stagewire.client.result import Result
    from stagewire.client.state import (
        ConstraintState,
        CoordinatorState,
        LedgerState,
        Phase,
        PipelineState,
        ReservationState,
        StageState,
        WorkerState,
    )

_HOMES = {
    "call": ("Call", "Output"),
    "client": ("Client", "connect"),
    "media": ("audio", "image", "text", "write_wav"),
    "receipt": ("Grade", "HopReceipt", "Receipt", "StageReceipt", "Table", "Verdict"),
    "result": ("Result",),
    "state": (
        "ConstraintState",
        "CoordinatorState",
        "LedgerState",
        "Phase",
        "PipelineState",
        "ReservationState",
        "StageState",
        "WorkerState",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Call",
    "Client",
    "ConstraintState",
    "CoordinatorState",
    "Grade",
    "HopReceipt",
    "LedgerState",
    "Output",
    "Phase",
    "PipelineState",
    "Receipt",
    "ReservationState",
    "Result",
    "StageReceipt",
    "StageState",
    "Table",
    "Verdict",
    "WorkerState",
    "audio",
    "connect",
    "image",
    "text",
    "write_wav",
]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
