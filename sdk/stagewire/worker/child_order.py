"""The order of a stage as its child reads it: JSON, with what the child needs to know beside it."""

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder


@dataclass(frozen=True, slots=True)
class ChildOrder:
    """What a child is told first."""

    target: str
    """`module:function`, which takes an order and a progress and returns a loaded stage."""
    parent_pid: int
    order: StageOrder

    def to_json(self) -> bytes:
        """Returns its form on the socket."""
        order = dataclasses.asdict(self.order)
        order["files"] = {name: str(path) for name, path in self.order.files.items()}
        order["options"] = dict(self.order.options)
        if order["hang_timeout_seconds"] == math.inf:
            # JSON has no infinity, and what it stands for is the default.
            del order["hang_timeout_seconds"]
        fields = {"target": self.target, "parent_pid": self.parent_pid, "order": order}
        return json.dumps(fields).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "ChildOrder":
        """Reads what `to_json` made; it comes from the worker alone."""
        fields: dict[str, Any] = json.loads(text)
        order = fields["order"]
        order["files"] = {name: Path(path) for name, path in order["files"].items()}
        order["inputs"] = tuple(map(_port, order["inputs"]))
        order["outputs"] = tuple(map(_port, order["outputs"]))
        return cls(fields["target"], fields["parent_pid"], StageOrder(**order))


def _port(fields: dict[str, Any]) -> Port:
    return Port(
        fields["name"],
        DataType(fields["data_type"]),
        tuple(Dimension(**item) for item in fields["dimensions"]),
        fields["is_stream"],
    )
