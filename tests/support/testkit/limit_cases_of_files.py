"""The table of limits, third part: plans, media, logs and other files."""

import struct
import zlib
from pathlib import Path
from typing import Any, Final

import yaml

from coordinator.plan.loading import load_plan, parse_plan
from coordinator.reach.worker_log import CUT_MARK, WorkerLog
from stagewire.client import audio, image, text, write_wav
from stagewire.client.sound import check_form, check_length
from stagewire.endpoint import FILE_NAME, read_endpoint
from stagewire.errors import CoordinatorUnreachableError, MediaInvalidError, PlanInvalidError
from testkit.fuzz_corpus import SMALL_PLAN
from testkit.limit_table import Act, Bounded, Refused, sparse, sparse_file

# --- plans ---


def _plan(*changes: tuple[str, str]) -> Act:
    made = SMALL_PLAN
    for old, new in changes:
        assert made.count(old) == 1
        made = made.replace(old, new)
    content = made.encode()
    return lambda: parse_plan(content, Path("plan.yaml"))


def _shape(data_type: str, shape: str) -> Act:
    return _plan(('{type: int4, shape: ["n<=7", 3]}', f"{{type: {data_type}, shape: [{shape}]}}"))


def _plan_of_bytes(size: int, folder: Path) -> Act:
    if size > 1 << 24:
        path = sparse_file(folder / "plan.yaml", size, SMALL_PLAN.encode())
        return lambda: load_plan(path)
    content = SMALL_PLAN.encode()
    content += b"#" * (size - len(content))
    return lambda: parse_plan(content, Path("plan.yaml"))


def _options(value: str) -> tuple[str, str]:
    return (
        "    memory: {resident: 2MiB}",
        f"    options: {{x: {value}}}\n    memory: {{resident: 2MiB}}",
    )


def _depth(depth: int, _: Path) -> Act:
    # The plan, its stages, the stage and its options are four levels.
    return _plan(_options("[" * (depth - 4) + "]" * (depth - 4)))


def _nodes(count: int, _: Path) -> Act:
    text = SMALL_PLAN.replace(*_options("[]"))
    rest = sum(isinstance(event, yaml.NodeEvent) for event in yaml.parse(text, yaml.CSafeLoader))
    listed = ", ".join("1" * (count - rest))
    return _plan(_options(f"[{listed}]"))


# --- media ---


def _sound_file(size: int, folder: Path) -> Act:
    path = sparse_file(folder / "sound.wav", size)
    return lambda: audio(path)


def _image_file(size: int, folder: Path) -> Act:
    path = sparse_file(folder / "image.png", size)
    return lambda: image(path)


def _given_content(size: int, folder: Path) -> Act:
    content = sparse(folder / "content", size)
    return lambda: audio(content)


def _wave(channels: int, rate: int) -> Act:
    header = struct.pack("<HHIIHH", 1, channels, rate, 0, 2 * channels & 0xFFFF, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + header + b"data" + struct.pack("<I", 0)
    content = b"RIFF" + struct.pack("<I", len(chunks)) + chunks
    return lambda: audio(content)


def _written(rate: int, folder: Path) -> Act:
    import numpy as np

    return lambda: write_wav(folder / "out.wav", np.zeros(4, np.float32), rate)


def _pixels(width: int, height: int) -> Act:
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + head
        + struct.pack(">I", zlib.crc32(head))
        + struct.pack(">I", 0)
        + b"IDAT"
        + struct.pack(">I", zlib.crc32(b"IDAT"))
    )
    return lambda: image(content)


def _text(size: int, _: Path) -> Act:
    words = "a" * size
    return lambda: text(words)


def _text_file(size: int, folder: Path) -> Act:
    path = sparse_file(folder / "words.txt", size, b"words")
    return lambda: text(path)


# --- files of the coordinator ---


def _endpoint(size: int, folder: Path) -> Act:
    folder.chmod(0o700)
    sparse_file(folder / FILE_NAME, size, b"{}")
    return lambda: read_endpoint(folder)


def _log_bytes(size: int, folder: Path) -> Any:
    content = b"line\n" * (size // 5 + 1)

    def write() -> int:
        log = WorkerLog(folder / "log")
        log.append(content)
        log.append(content)
        log.close()
        return max(path.stat().st_size for path in folder.iterdir())

    return write


def _line_bytes(size: int, folder: Path) -> Any:
    def write() -> int:
        log = WorkerLog(folder / "log")
        log.append(b"x" * size + b"\nnext\n")
        log.close()
        return max(map(len, log.path.read_bytes().splitlines()))

    return write


CASES: Final[tuple[Refused | Bounded, ...]] = (
    Refused(
        "TENSOR_RANK",
        "dimensions of a port",
        lambda size, _: _shape("uint8", ", ".join("1" * size)),
        (1000,),
        PlanInvalidError,
        "dimensions; 8 are allowed",
    ),
    Refused(
        "TENSOR_DIMENSION",
        "extent of a port",
        lambda size, _: _shape("uint8", str(size)),
        (2**62, -1, 0),
        PlanInvalidError,
        "an extent is 1 to",
    ),
    Refused(
        "TENSOR_DIMENSION",
        "variable extent of a port",
        lambda size, _: _shape("uint8", f'"n<={size}"'),
        (2**63, 2**200, -1),
        PlanInvalidError,
        "an extent",
    ),
    *(
        Refused(
            "TENSOR_BYTES",
            f"{data_type} port",
            lambda size, _, data_type=data_type: _shape(data_type, str(size)),  # type: ignore[misc]
            (2**31, 2**40),
            PlanInvalidError,
            "bytes an item",
        )
        for data_type in ("uint8", "int4", "float8_e5m2")
    ),
    Refused(
        "STRING_ELEMENTS",
        "strings of a port",
        lambda size, _: _shape("utf8", str(size)),
        (2**31, 2**40),
        PlanInvalidError,
        "strings",
    ),
    Refused(
        "ID_PATTERN",
        "name in a plan",
        lambda size, _: _plan(
            ("  cpu: {kind", f"  {'a' * size}: {{kind"), ("[cpu]", f"[{'a' * size}]")
        ),
        (4000, 2**18),
        PlanInvalidError,
    ),
    Refused(
        "PLAN_BYTES",
        "bytes of a plan",
        _plan_of_bytes,
        (2**24, 2**31, 2**40),
        PlanInvalidError,
        "has more than",
    ),
    Refused("PLAN_DEPTH", "depth of a plan", _depth, (1000, 2**18), PlanInvalidError, "nest"),
    Refused("PLAN_NODES", "values of a plan", _nodes, (2**18,), PlanInvalidError, "values"),
    *(
        Refused("MEDIA_BYTES", about, prepare, (2**31, 2**40), MediaInvalidError, "over the limit")
        for about, prepare in (
            ("sound file", _sound_file),
            ("image file", _image_file),
            ("content", _given_content),
        )
    ),
    Refused(
        "AUDIO_CHANNELS",
        "header of a WAV file",
        lambda size, _: _wave(size, 8000),
        (2**16 - 1, 0),
        MediaInvalidError,
        "channels, not 1 to 64",
    ),
    Refused(
        "AUDIO_CHANNELS",
        "form of a recording",
        lambda size, _: lambda: check_form(size, 8000, "it"),
        (2**31, 2**63, -1),
        MediaInvalidError,
        "channels",
    ),
    Refused(
        "AUDIO_RATE",
        "header of a WAV file",
        lambda size, _: _wave(1, size),
        (2**31, 2**32 - 1, 0),
        MediaInvalidError,
        "its rate is",
    ),
    Refused(
        "AUDIO_RATE",
        "rate that is written",
        _written,
        (2**31, 2**63, -1),
        MediaInvalidError,
        "rate",
    ),
    Refused(
        "AUDIO_SAMPLES",
        "samples of a recording",
        lambda size, _: lambda: check_length(size, "it"),
        (2**31, 2**63),
        MediaInvalidError,
        "samples; cut it",
    ),
    Refused(
        "IMAGE_PIXELS",
        "header of a PNG file",
        # One more pixel than a square number: another row.
        lambda size, _: _pixels(2**13, size // 2**13 + size % 2),
        (2**31, 2**43),
        MediaInvalidError,
        "67108864",
    ),
    Refused("TEXT_BYTES", "text", _text, (2**24,), MediaInvalidError, "over the limit"),
    Refused(
        "TEXT_BYTES", "text file", _text_file, (2**31, 2**40), MediaInvalidError, "over the limit"
    ),
    Refused(
        "ENDPOINT_BYTES",
        "endpoint file",
        _endpoint,
        (2**31, 2**40),
        CoordinatorUnreachableError,
        "is over",
    ),
    Bounded("LOG_BYTES", "log of a worker", _log_bytes, (1000, 4 << 20, 9 << 20)),
    Bounded(
        "LOG_LINE_BYTES",
        "line of a log",
        _line_bytes,
        (16 << 10, (16 << 10) + 1, 3 << 20),
        slack=len(CUT_MARK),
    ),
)
