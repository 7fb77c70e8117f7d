"""How supervision says what became of a worker. Pure."""

from coordinator.facts.ids import WorkerId
from stagewire.errors import (
    InternalFaultError,
    StageError,
    StageFailedError,
    StartDeadlineError,
    WorkerHungError,
    WorkerLostError,
    WorkerStartError,
    WorkerStuckError,
)


def ended_early(worker: WorkerId, how: object) -> WorkerStartError:
    """Its process ended before it was ready."""
    return WorkerStartError(f"worker {worker!r} ended while it started: {how}")


def late(worker: WorkerId, limit_seconds: float, awaited: str) -> StartDeadlineError:
    """It was not ready in time."""
    return StartDeadlineError(
        f"worker {worker!r} was not ready after {limit_seconds:g} s; it was waited for {awaited}",
        worker=worker,
        awaited=awaited,
    )


def ended(worker: WorkerId, how: object) -> WorkerLostError:
    """Its process ended, which is a loss whatever its exit code says."""
    return WorkerLostError(f"worker {worker!r} ended: {how}", worker=worker)


def hung(worker: WorkerId, what: str) -> WorkerHungError:
    """It lives and makes no progress."""
    return WorkerHungError(f"worker {worker!r} made no progress: {what}", worker=worker)


def stuck(worker: WorkerId, pid: int, limit_seconds: float) -> WorkerStuckError:
    """It was killed and does not end."""
    return WorkerStuckError(
        f"process {pid} of worker {worker!r} did not end within {limit_seconds:g} s after it was"
        " killed; its memory stays reserved",
        worker=worker,
    )


def unsupervised(worker: WorkerId) -> InternalFaultError:
    """Supervision itself failed."""
    return InternalFaultError(
        f"worker {worker!r} could not be supervised; the log has the cause", worker=worker
    )


def given_up(worker: WorkerId, last: StageError | None) -> StageFailedError:
    """It is not started again, which clients are told."""
    # The reason alone: the message of a failed start may name a file.
    if isinstance(last, WorkerStuckError):
        return StageFailedError(
            f"worker {worker!r} waits for the end of its last process ({last.reason}) and cannot"
            " start before",
            worker=worker,
        )
    cause = f" after {last.reason}" if last is not None else ""
    return StageFailedError(f"worker {worker!r} was given up{cause}", worker=worker)
