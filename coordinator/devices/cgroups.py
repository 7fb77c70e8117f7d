"""Control groups, versions 1 and 2: the folders whose limits hold for this process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from coordinator.devices.probing import read_text


@dataclass(frozen=True, slots=True)
class GroupFolder:
    """One control group that holds for this process."""

    path: Path
    version: int


@dataclass(frozen=True, slots=True)
class _Mount:
    version: int
    controllers: frozenset[str]
    group: PurePosixPath
    """Group that is the root of the mount."""
    point: str


def group_folders(root: Path, controller: str) -> Iterator[GroupFolder]:
    """Iterates over the groups of a controller from this process's own up to the mounted root.

    Yields nothing where there are no control groups at all.
    """
    own = _own_groups(root)
    for mount in _mounts(root):
        if mount.version == 1 and controller not in mount.controllers:
            continue
        # Version 2 has one tree for all controllers, listed with an empty name.
        group = own.get(controller if mount.version == 1 else "")
        if group is None:
            continue
        top = root / mount.point.lstrip("/")
        folder = top / _below(group, mount.group)
        if not folder.is_dir():
            # The group lies outside of what this container sees; the top is its own group then.
            folder = top
        yield GroupFolder(folder, mount.version)
        while folder != top:
            folder = folder.parent
            yield GroupFolder(folder, mount.version)


def _own_groups(root: Path) -> dict[str, PurePosixPath]:
    """Returns the group of this process by controller; version 2 is under the empty name."""
    groups: dict[str, PurePosixPath] = {}
    try:
        lines = read_text(root / "proc/self/cgroup").splitlines()
    except FileNotFoundError:
        return groups
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator:
            for controller in controllers.split(","):
                groups[controller] = PurePosixPath(path)
    return groups


def _mounts(root: Path) -> Iterator[_Mount]:
    try:
        lines = read_text(root / "proc/self/mountinfo").splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        # Form: id parent device group point options [tags] - type source super-options
        left, _, right = line.partition(" - ")
        places, kinds = left.split(), right.split()
        if len(places) < 5 or len(kinds) < 3 or kinds[0] not in ("cgroup", "cgroup2"):  # noqa: PLR2004
            continue
        version = 2 if kinds[0] == "cgroup2" else 1
        controllers = frozenset(kinds[2].split(","))
        # A space in a mount point is written as an octal escape.
        point = places[4].replace("\\040", " ")
        yield _Mount(version, controllers, PurePosixPath(places[3]), point)


def _below(group: PurePosixPath, mounted: PurePosixPath) -> PurePosixPath:
    """Returns a group relative to the mounted one, or that one when it is not below it."""
    if ".." in group.parts or not group.is_relative_to(mounted):
        return PurePosixPath()
    return group.relative_to(mounted)
