import random
from pathlib import Path

import pytest

from coordinator.reach.worker_log import CUT_MARK, WorkerLog, last_lines

pytestmark = pytest.mark.unit


def in_random_pieces(content: bytes, seed: int) -> list[bytes]:
    numbers = random.Random(seed)
    pieces = []
    while content:
        size = numbers.randint(1, 60)
        pieces.append(content[:size])
        content = content[size:]
    return pieces


def write(path: Path, pieces: list[bytes], **options) -> WorkerLog:
    log = WorkerLog(path, **options)
    for piece in pieces:
        log.append(piece)
    log.close()
    return log


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_cut_alike_however_the_pieces_fall(tmp_path, seed):
    lines = [b"short", b"", b"x" * 16, b"y" * 17, b"z" * 500, b"\x00\xff\x1b[2J", b"last"]
    content = b"\n".join(lines) + b"\n"
    expected = b"".join(line[:16] + (CUT_MARK if len(line) > 16 else b"\n") for line in lines)

    write(tmp_path / "w.log", in_random_pieces(content, seed), max_line_bytes=16)

    assert (tmp_path / "w.log").read_bytes() == expected


def test_a_line_without_end_takes_no_more_than_one_line(tmp_path):
    write(tmp_path / "w.log", [b"n" * 1000] * 100, max_line_bytes=64)

    assert (tmp_path / "w.log").read_bytes() == b"n" * 64


def test_a_full_log_becomes_the_older_one(tmp_path):
    pieces = [f"line {number:04}\n".encode() for number in range(1000)]

    log = write(tmp_path / "w.log", pieces, max_bytes=1000)

    assert log.path.stat().st_size <= 1000
    assert log.older_path.stat().st_size <= 1000
    assert last_lines(log.path, 1) == ["line 0999"]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_earlier_log_is_continued_and_counts(tmp_path):
    write(tmp_path / "w.log", [b"first run\n"])
    write(tmp_path / "w.log", [b"second run\n"])

    assert last_lines(tmp_path / "w.log", 5) == ["first run", "second run"]


def test_a_full_disk_stops_nothing_and_is_said_once(caplog):
    log = WorkerLog(Path("/dev/full"))
    log.append(b"lost\n")
    log.append(b"too\n")
    log.close()

    assert [record.getMessage() for record in caplog.records] == [
        "log of worker incomplete path=/dev/full lost_bytes=9"
    ]


def test_of_a_log_that_is_whole_nothing_is_said(tmp_path, caplog):
    write(tmp_path / "w.log", [b"kept\n"])

    assert not caplog.records


def test_a_link_in_place_of_the_log_is_not_followed(tmp_path):
    (tmp_path / "w.log").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic links"):
        WorkerLog(tmp_path / "w.log")


def test_last_lines_hold_nothing_that_steers_a_terminal(tmp_path):
    write(tmp_path / "w.log", [b"\x1b[2Jred\x07\n", b"\xff\n"])

    assert last_lines(tmp_path / "w.log", 2) == ["\ufffd[2Jred\ufffd", "\ufffd"]
    assert last_lines(tmp_path / "none.log", 2) == []
