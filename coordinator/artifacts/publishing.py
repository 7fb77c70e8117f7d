"""Gives finished files their names in the cache."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from coordinator.artifacts.layout import Layout
from coordinator.artifacts.specification import Artifact

_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


def publish(temporary: Path, target: Path) -> None:
    """Gives a finished file its name; after a loss of power it is there whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def show(layout: Layout, artifact: Artifact, staging: Path) -> None:
    """Puts the files of an artifact into its folder; the caller holds the artifact's lock."""
    for file in artifact.files:
        stored = layout.root / layout.object_path(file)
        view = layout.root / layout.view_path(artifact, file)
        if view.is_file() and not view.is_symlink() and os.path.samefile(view, stored):
            continue
        temporary = staging / "view"
        try:
            temporary.hardlink_to(stored)
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            shutil.copy2(stored, temporary)
        clear_folder(view)
        publish(temporary, view)


def clear_folder(path: Path) -> None:
    """Removes a folder that stands where a file belongs: only files are replaced in one step."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
