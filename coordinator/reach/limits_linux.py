"""Limits of the operating system on this process."""

import resource
from typing import Final

from stagewire.errors import ProcessLimitError

_PLENTY: Final = 65536
_NEEDED: Final = 64
"""Logs, listeners, a few clients, and uv while it builds."""
_NEEDED_A_WORKER: Final = 16
"""Its pipes and connections."""


def allow_open_files(worker_count: int) -> None:
    """Lets this process open more files than usual, if it may; what it starts inherits that.

    Raises:
        ProcessLimitError: it may open fewer than it needs for so many workers.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _PLENTY if hard == resource.RLIM_INFINITY else min(hard, _PLENTY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    needed = _NEEDED + _NEEDED_A_WORKER * worker_count
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ProcessLimitError(
            f"this process may open {hard} files and needs up to {needed}; raise it with"
            f" `ulimit -n {needed}`, or as root in /etc/security/limits.conf",
            limit=hard,
            needed=needed,
        )
