"""Frames joined by hand, as another language's own decoder reads them."""

import base64
import json
import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from stagewire import frame
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
    result = subprocess.run(
        ["node", Path(__file__).with_name("decode_frames.mjs"), protobufjs],
        input=json.dumps({"protos": str(PROTOS), "frames": frames}),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["found"] == expected
    installed = json.loads((protobufjs / "node_modules/protobufjs/package.json").read_text())
    assert installed["version"] == VERSION
