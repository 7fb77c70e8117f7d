"""Waiting for the end of a process that is no child."""

import os
import select


def wait_for_end(pid: int, timeout_seconds: float) -> bool:
    """Returns whether a process ended within the time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_seconds * 1e3))
    finally:
        os.close(descriptor)
