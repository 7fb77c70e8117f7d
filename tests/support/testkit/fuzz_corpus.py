"""Inputs of the fuzz targets: seeds made from real messages, and inputs that once found a defect.

Both are kept as text, one input a line in base64 after its name, so that a change of them can be
read. `python tests/fuzz/run.py --write-seeds` writes the seeds; a test compares them.
"""

import base64
import zlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from stagewire import status
from stagewire.bits import STORAGE, array_of
from stagewire.chunks import chunks_of, whole_item
from stagewire.envelope import Waiting, take_envelope
from stagewire.errors import LaneFullError
from stagewire.frame import join
from stagewire.items import to_chunks
from stagewire.limits import INLINE_BYTES
from stagewire.tensor import DataType, Value, encode
from stagewire.v1 import coordinator_pb2, gateway_pb2

ROOT: Final = Path(__file__).resolve().parents[3]
FUZZ: Final = ROOT / "tests/fuzz"

SMALL_PLAN: Final = """\
apiVersion: stagewire/v1
kind: Plan
metadata: {name: small}
workers:
  cpu: {kind: cpu, environment: workers/cpu}
stages:
  one:
    executor: fake
    workers: [cpu]
    inputs: {x: {type: int4, shape: ["n<=7", 3]}}
    outputs: {y: {type: utf8, stream: true}}
    memory: {resident: 2MiB}
    limits: {deadline: 1.5s, queue: 4}
pipelines:
  main:
    inputs: {x: one.x}
    outputs: {y: one.y}
"""


SEEDS: Final = FUZZ / "seeds"
CRASHES: Final = FUZZ / "crashes"
_PIECE_BYTES: Final = 4096


def read(folder: Path, target: str) -> dict[str, bytes]:
    """Returns the inputs of a target that are kept in a folder, by name."""
    file = folder / f"{target}.txt"
    lines = file.read_text(encoding="ascii").splitlines() if file.exists() else []
    pairs = (line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name: base64.b64decode(text) for name, text in pairs}


def inputs(target: str) -> dict[str, bytes]:
    """Returns all inputs that a target is tried with, the sample plans among them."""
    plans = (ROOT / "plans").glob("*.yaml") if target == "plan" else ()
    samples = {path.name: path.read_bytes() for path in plans}
    return {**samples, **read(SEEDS, target), **read(CRASHES, target)}


def write_seeds() -> None:
    """Writes the seeds of every target."""
    for target, made in seeds().items():
        text = "".join(
            f"{name} {base64.b64encode(raw).decode()}\n" for name, raw in sorted(made.items())
        )
        SEEDS.mkdir(exist_ok=True)
        (SEEDS / f"{target}.txt").write_text(text, encoding="ascii")


def keep(folder: Path, target: str, name: str, raw: bytes) -> Path:
    """Adds an input that found a defect to those that every run tries again."""
    file = folder / f"{target}.txt"
    folder.mkdir(exist_ok=True)
    if raw not in read(folder, target).values():
        with file.open("a", encoding="ascii") as lines:
            lines.write(f"{name} {base64.b64encode(raw).decode()}\n")
    return file


def seeds() -> dict[str, dict[str, bytes]]:
    """Returns the seeds of each target by name."""
    requests = dict(_requests())
    envelopes = dict(_envelopes())
    return {
        "frame": {**requests, **envelopes, "end_of_input": _end_of_input()},
        "tensor": requests,
        "envelope": envelopes,
        "items": envelopes,
        "plan": {
            "small": SMALL_PLAN.encode(),
            "broken": SMALL_PLAN.replace("[cpu]", "[gpu, *a]").replace("2MiB", "2").encode(),
        },
    }


def values() -> Iterator[tuple[str, Value]]:
    """Small values of every element type."""
    for data_type in DataType:
        if data_type.is_string:
            text: Any = "añ" if data_type is DataType.UTF8 else b"\xff\0"
            yield data_type.spelling, text
            yield f"{data_type.spelling}_row", np.array([text, text[:0]], object)
        elif data_type in STORAGE:
            yield data_type.spelling, array_of(data_type, [1, 0, 1], (3, 1))
        else:
            yield data_type.spelling, np.ones((1, 2), data_type.spelling)


def _requests() -> Iterator[tuple[str, bytes]]:
    for name, value in values():
        descriptor, payload = encode(value)
        request = coordinator_pb2.RunRequest(
            open={"pipeline": "main"}, items=[whole_item("x", 0, descriptor, payload, 0)]
        )
        yield name, join(request.SerializeToString(), [payload])
    descriptor, payload = encode(np.float64(0))
    two = [whole_item(port, 0, descriptor, payload, place) for place, port in ((0, "x"), (8, "y"))]
    request = coordinator_pb2.RunRequest(open={"pipeline": "main", "outputs": ["y"]}, items=two)
    yield "two_items", join(request.SerializeToString(), [payload, payload])


def _envelopes() -> Iterator[tuple[str, bytes]]:
    start = gateway_pb2.StartExecution(stage_id="one")
    start.credits.add(port="y", items=64, size_bytes=8 << 20)
    failure = gateway_pb2.ExecutionFailed(failure=status.to_message(LaneFullError("full")))
    text = list(to_chunks("text", 0, "a")) + list(to_chunks("text", 1, "bc"))
    floats = list(to_chunks("floats", 0, np.ones((2, 3), np.float32)))
    packed = list(to_chunks("packed", 0, array_of(DataType.INT4, [-1, 2, 3], (3,))))
    for name, chunks, others in (
        ("start", text[:1], [gateway_pb2.ExchangeMessage(start_execution=start)]),
        ("texts", text, [gateway_pb2.ExchangeMessage(end_of_port={"port": "text"})]),
        ("numbers", floats + packed, []),
        ("failed", [], [gateway_pb2.ExchangeMessage(execution_failed=failure)]),
    ):
        waiting: Waiting = deque((other, None) for other in others)
        for chunk in chunks:
            message = gateway_pb2.ExchangeMessage(execution_id=7, item=chunk.item)
            waiting.append((message, chunk.payload))
        yield name, take_envelope(waiting, gateway_pb2.ExchangeRequest())
    yield "chunks", _chunked()


def _chunked() -> bytes:
    """A tensor in chunks that all point to the same bytes, so that the seed stays small."""
    descriptor, payload = encode(np.zeros(INLINE_BYTES + 1, np.uint8))
    [first] = chunks_of("bytes", 0, descriptor, payload)
    envelope = gateway_pb2.ExchangeRequest()
    for offset in range(0, payload.nbytes, _PIECE_BYTES):
        piece = payload[offset : offset + _PIECE_BYTES]
        item = envelope.messages.add(execution_id=7).item
        item.port = "bytes"
        if offset == 0:
            item.tensor.CopyFrom(first.item.tensor)
        item.chunk_offset_bytes = offset
        item.payload_size_bytes = piece.nbytes
        item.checksum = zlib.crc32(piece)
    return join(envelope.SerializeToString(), [payload[:_PIECE_BYTES]])


def _end_of_input() -> bytes:
    return coordinator_pb2.InferRequest(end_of_input={"port": "x"}).SerializeToString()
