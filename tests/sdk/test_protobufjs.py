"""Frames joined by hand, as another language's own decoder reads them."""

import base64
import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from google.protobuf.descriptor import FieldDescriptor

from stagewire import frame
from stagewire.bits import STORAGE
from stagewire.chunks import whole_item
from stagewire.rounding import SHORT_FLOATS, float_of_bits
from stagewire.tensor import DataType, encode
from stagewire.v1 import coordinator_pb2, gateway_pb2

pytestmark = pytest.mark.integration

VERSION = "8.8.1"
PROTOS = Path(__file__).resolve().parents[2] / "protos"
FRAMES = 200
LARGE = {
    FieldDescriptor.TYPE_UINT64,
    FieldDescriptor.TYPE_INT64,
    FieldDescriptor.TYPE_FIXED64,
}


@pytest.fixture(scope="module")
def protobufjs():
    """A folder where protobufjs is installed, kept between runs outside of the checkout."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stagewire-tests"
    folder = cache / f"protobufjs-{VERSION}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=cache))
        (scratch / "package.json").write_text('{"private": true}')
        npm = shutil.which("npm")
        assert npm, "install node and npm: apt-get install nodejs npm"
        subprocess.run(
            [
                npm,
                "install",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                f"protobufjs@{VERSION}",
            ],
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=240,
        )
        try:
            scratch.rename(folder)
        except OSError:
            # Another run was faster; its folder holds the same.
            shutil.rmtree(scratch)
    return folder


def random_text(chance):
    return "".join(chance.choices("azAZ09._-äß語\N{GRINNING FACE}", k=chance.randrange(12)))


def random_number(chance, bits):
    return chance.choice([0, 1, 127, 128, 2**bits - 1, chance.getrandbits(bits)])


def is_repeated(value):
    # Descriptors say so under another name in each version of protobuf.
    return hasattr(value, "extend")


def fill(message, chance, depth=0):
    """Sets fields at random, except the payload."""
    for field in message.DESCRIPTOR.fields:
        if field.number == frame.PAYLOAD_FIELD or chance.random() < 0.3:
            continue
        if field.message_type is not None:
            if depth > 4:
                continue
            if is_repeated(getattr(message, field.name)):
                for _ in range(chance.randrange(4)):
                    fill(getattr(message, field.name).add(), chance, depth + 1)
            else:
                getattr(message, field.name).SetInParent()
                fill(getattr(message, field.name), chance, depth + 1)
        elif is_repeated(getattr(message, field.name)):
            values = [random_value(field, chance) for _ in range(chance.randrange(4))]
            getattr(message, field.name).extend(values)
        else:
            setattr(message, field.name, random_value(field, chance))


def random_value(field, chance):
    if field.type == FieldDescriptor.TYPE_STRING:
        return random_text(chance)
    if field.type == FieldDescriptor.TYPE_BOOL:
        return chance.random() < 0.5
    if field.enum_type is not None:
        return chance.choice(field.enum_type.values).number
    if field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32):
        # Seconds and nanoseconds of a duration.
        return random_number(chance, 29)
    return random_number(chance, 64 if field.type in LARGE else 32)


def as_json(message):
    return {
        field.name: [one_as_json(field, item) for item in value]
        if is_repeated(value)
        else one_as_json(field, value)
        for field, value in message.ListFields()
    }


def one_as_json(field, value):
    if field.message_type is not None:
        return as_json(value)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64encode(value).decode()
    return str(value) if field.type in LARGE else value


def run_node(script, folder, given):
    """Returns what a script found in the frames that it was given."""
    result = subprocess.run(
        ["node", Path(__file__).with_name(script), folder],
        input=json.dumps({"protos": str(PROTOS), **given}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["found"]


def test_protobufjs_reads_the_same_values(protobufjs):
    chance = random.Random(20261130)
    frames, expected = [], []
    for number in range(FRAMES):
        kind = (coordinator_pb2.RunRequest, gateway_pb2.ExchangeRequest)[number % 2]
        message = kind()
        fill(message, chance)
        pieces = [
            chance.randbytes(chance.choice([0, 1, 100, 70_000])) for _ in range(chance.randrange(4))
        ]
        joined = frame.join(message.SerializeToString(), pieces)
        message.payload = b"".join(pieces)
        frames.append(
            {"type": kind.DESCRIPTOR.full_name, "frame": base64.b64encode(joined).decode()}
        )
        expected.append(as_json(message))
    assert run_node("decode_frames.mjs", protobufjs, {"frames": frames}) == expected
    installed = json.loads((protobufjs / "node_modules/protobufjs/package.json").read_text())
    assert installed["version"] == VERSION


# --- elements ---


def all_patterns(data_type, chance):
    """An odd number of elements, every pattern among them where there are few."""
    if data_type is DataType.UTF8:
        return np.array(["", "añ", "語\N{GRINNING FACE}\0"], object)
    if data_type is DataType.BYTES:
        return np.array([b"", b"\xff\0", bytes(range(256))], object)
    if data_type is DataType.BOOL:
        return np.array([True, False, True])
    if data_type in STORAGE:
        count = 16 if data_type.is_packed else 1 << 8 * np.dtype(STORAGE[data_type]).itemsize
        patterns = np.arange(count, dtype=STORAGE[data_type])
        patterns = np.append(patterns, patterns[:1]).view(getattr(ml_dtypes, data_type.spelling))
        return patterns
    kind = np.dtype(data_type.spelling)
    return np.frombuffer(chance.randbytes(kind.itemsize * 1001), kind)


def elements_as_json(data_type, value):
    """Elements as JSON can hold them: large integers as text, what is no number by its name."""
    if data_type in SHORT_FLOATS:
        bits = np.asarray(value).view(STORAGE[data_type]).tolist()
        elements = [float_of_bits(data_type, item) for item in bits]
    elif data_type.is_packed:
        elements = value.astype(np.int64).tolist()
    else:
        elements = value.tolist()
    if data_type is DataType.BYTES:
        return [base64.b64encode(item).decode() for item in elements]
    if data_type in (DataType.INT64, DataType.UINT64):
        return [str(item) for item in elements]
    return [
        str(item) if isinstance(item, float) and not np.isfinite(item) else item
        for item in elements
    ]


def test_another_language_reads_every_element_type(protobufjs):
    chance = random.Random(20261201)
    frames, expected = [], []
    for data_type in DataType:
        value = all_patterns(data_type, chance)
        descriptor, payload = encode(value)
        item = whole_item("x", 0, descriptor, payload, 0)
        assert descriptor.data_type is data_type
        header = coordinator_pb2.RunRequest(items=[item]).SerializeToString()
        frames.append(base64.b64encode(frame.join(header, [payload])).decode())
        expected.append(elements_as_json(data_type, value))
    found = run_node("read_tensors.mjs", protobufjs, {"frames": frames})
    for data_type, elements, ours in zip(DataType, found, expected, strict=True):
        theirs = elements
        if "FLOAT" in data_type.name:
            # Another language writes a large float without a point.
            theirs = [item if isinstance(item, str) else float(item) for item in elements]
        assert theirs == ours, data_type
