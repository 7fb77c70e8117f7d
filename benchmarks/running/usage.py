"""CPU time of whole trees of processes, and of the machine."""

import contextlib

import psutil


def tree_cpu_seconds(pid: int) -> float:
    """Returns what a process, its children and those of them that ended have used so far."""
    spent = 0.0
    # A process may end while its tree is walked; its parent then has its time.
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                spent += times.user + times.system + times.children_user + times.children_system
    return spent


def machine_cpu_seconds() -> float:
    """Returns the CPU time that the whole machine has used so far."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0) + getattr(times, "steal", 0.0)
    # Time of guests is counted in user time already.
    guests = getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return float(sum(times) - idle - guests)
