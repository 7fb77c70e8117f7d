"""What a function is: a name, typed ports, and how a stage of it is made."""

from collections.abc import Callable
from dataclasses import dataclass

from stagewire.worker.executor import LoadedStage, Progress, StageOrder
from stagewire.worker.order import PortRule


@dataclass(frozen=True, slots=True)
class Function:
    """One function that plans can name."""

    name: str
    inputs: tuple[PortRule, ...]
    outputs: tuple[PortRule, ...]
    load: Callable[[StageOrder, Progress], LoadedStage]
    """Makes a stage of an order whose ports and format were checked."""
    formats: tuple[str, ...] = ()
    """Formats of the artifact that it needs; empty when it needs none."""
    in_child: bool = False
    """Whether its stages run in a child of the worker unless the plan says otherwise.

    True where it holds the interpreter lock for long: see the measurements in the worker's page.
    """
