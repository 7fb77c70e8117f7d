"""What a worker does before anything else: it binds itself to the process that started it.

Imports the standard library alone, because the libraries of a worker take longer to import than
a coordinator may live.
"""

import sys


def bind_to_parent(parent_pid: int | None = None) -> None:
    """Ends this process when its parent dies, where the operating system can do that.

    Call it first of all, and again with the parent's pid as soon as that is known: a parent that
    died before the first call is only noticed by the second.
    """
    if sys.platform == "linux":
        from stagewire.worker.lifeline_linux import die_with_parent

        die_with_parent(parent_pid)
