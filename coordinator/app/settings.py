"""What a person or a test sets for one run of a coordinator."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordinator.supervise.policy import RestartLimits
from stagewire.endpoint import without_tilde
from stagewire.errors import PathForbiddenError


def default_cache_folder() -> Path:
    """Returns $STAGEWIRE_CACHE, else `stagewire` below $XDG_CACHE_HOME, without links in it.

    Raises:
        PathForbiddenError: nobody knows that folder.
    """
    chosen = os.environ.get("STAGEWIRE_CACHE")
    if chosen:
        return _resolved(without_tilde(Path(chosen)))
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a path that is not absolute.
    root = Path(base) if os.path.isabs(base) else without_tilde(Path("~/.cache"))
    return _resolved(root / "stagewire")


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise PathForbiddenError(
            f"the cache {path} is a link in a circle; name another folder with STAGEWIRE_CACHE"
        ) from error


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of supervision, in seconds. Generous by default: a loaded machine is no fault."""

    heartbeat: float = 0.5
    """Time between two heartbeats of a worker."""
    heartbeat_timeout: float = 10.0
    """Silence after which a worker counts as hung."""
    start_deadline: float = 300.0
    """Time in which a worker must attach, load and prove its stages."""
    drain: float = 10.0
    """Time that running requests get when the coordinator stops."""
    leave: float = 5.0
    """Time that a worker gets to leave by itself."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One run of a coordinator."""

    plan_path: Path
    state_folder: Path
    cache_folder: Path
    pipelines: Sequence[str] = ()
    """Pipelines to bring up; empty for all."""
    quota_bytes: int | None = None
    """Memory that the plan may use; None for what the machine has."""
    is_fake: bool = False
    """Whether stages are pretended, without models and environments."""
    is_dev: bool = False
    """Whether environments are editable installations of the checkout."""
    address: str = "127.0.0.1:0"
    """Where clients connect; loopback."""
    timing: Timing = field(default_factory=Timing)
    restarts: RestartLimits = field(default_factory=RestartLimits)
