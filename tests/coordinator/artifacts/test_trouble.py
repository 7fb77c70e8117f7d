"""What the operating system refuses is told with what to do."""

import errno
import os

import pytest

from coordinator.artifacts.trouble import failure_of_machine, naming_trouble, said
from stagewire.errors import DiskFullError, PathForbiddenError, ProcessLimitError, StageError

pytestmark = pytest.mark.unit


def error(number, path=None):
    return OSError(number, os.strerror(number), path)


@pytest.mark.parametrize(
    ("number", "kind", "remedy"),
    [
        (errno.ENOSPC, DiskFullError, "free space on it, or name another folder"),
        (errno.EDQUOT, DiskFullError, "free space on it, or name another folder"),
        (errno.EMFILE, ProcessLimitError, "ulimit -n"),
        (errno.ENFILE, ProcessLimitError, "fs.file-max"),
        (errno.EAGAIN, ProcessLimitError, "ulimit -u"),
        (errno.EROFS, PathForbiddenError, "STAGEWIRE_CACHE"),
        (errno.EACCES, PathForbiddenError, "STAGEWIRE_CACHE"),
        (errno.ENOENT, PathForbiddenError, "a part of it was removed meanwhile; start again"),
        (errno.EIO, PathForbiddenError, "STAGEWIRE_CACHE"),
    ],
)
def test_trouble_with_the_cache_is_named(tmp_path, number, kind, remedy):
    with pytest.raises(kind) as caught, naming_trouble(tmp_path):
        raise error(number, str(tmp_path / "files"))
    assert remedy in caught.value.message
    if kind is PathForbiddenError:
        assert str(tmp_path / "files") in caught.value.message


@pytest.mark.parametrize("other", [error(errno.EPIPE), KeyError("x"), DiskFullError("as it was")])
def test_whatever_else_fails_stays_as_it_is(tmp_path, other):
    with pytest.raises(type(other)) as caught, naming_trouble(tmp_path):
        raise other
    assert caught.value is other


def test_a_full_disk_is_found_behind_another_failure():
    failure = RuntimeError("a library failed")
    failure.__cause__ = error(errno.ENOSPC, "/somewhere")
    found = failure_of_machine(failure)
    assert isinstance(found, DiskFullError)
    assert "/somewhere" in found.message


@pytest.mark.parametrize("other", [error(errno.ENOENT), KeyError("x"), StageError("typed already")])
def test_what_is_no_limit_and_no_full_disk_is_not_explained(other):
    assert failure_of_machine(other) is None


def test_the_words_of_the_system_are_kept_where_they_say_enough():
    assert said(error(errno.EROFS)) == "Read-only file system"
    assert "ulimit -n" in said(error(errno.EMFILE))
