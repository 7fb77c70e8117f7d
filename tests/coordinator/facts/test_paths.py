import ntpath
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.paths import problem_of_relative_path

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "ambiguous"),
        (".", "ambiguous"),
        ("..", '".."'),
        ("../model.bin", '".."'),
        ("a/../../outside", '".."'),
        ("a/..", '".."'),
        ("a//b", "ambiguous"),
        ("a/./b", "ambiguous"),
        ("a/", "ambiguous"),
        ("a /b", "ambiguous"),
        (" a", "ambiguous"),
        ("a.", "ambiguous"),
        ("model.bin ", "ambiguous"),
        ("/etc/passwd", "absolute"),
        ("C:/windows", ":"),
        ("C:\\model.bin", ":"),
        ("file.onnx:stream", ":"),
        ("a\\b", "write a relative path"),
        ("\\\\?\\C:\\model.bin", "write a relative path"),
        ("a\x00b", "NUL"),
        ("a\tb", "control"),
        ("a\nb", "control"),
        ("a\x7fb", "control"),
        ("a\u202eb", "invisible"),
        ("a\u00a0b", "invisible"),
        ("a\ud800b", "invisible"),
        ("CON", "device"),
        ("con.txt", "device"),
        ("nul .txt", "device"),
        ("a/LPT1.bin", "device"),
        ("COM²", "device"),
        ("CONIN$", "device"),
        ("a/" * 300 + "b", "of 601 characters; 512"),
        ("/".join("x" * 200 for _ in range(10)), "of 2009 characters; 512"),
        ("a/" + "\u6c34" * 60 + "/" + "/".join("\u6c34" * 80 for _ in range(5)), "bytes; 1024"),
        ("a" * 201, "above 200 characters"),
        ("x" * 300, "above 200 characters"),
        ("ü" * 128, "above 255 bytes"),
    ],
)
def test_a_path_that_may_leave_its_folder_has_a_problem(path, reason):
    assert reason in problem_of_relative_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "model.bin",
        "a/b.c/d",
        "a b/c",
        ".hidden",
        "größe.bin",
        "console.txt",
        "com0",
        "a..b",
        "a" * 200,
        "ü" * 127,
        "/".join(["x" * 127] * 4),
    ],
)
def test_a_plain_path_has_none(path):
    assert problem_of_relative_path(path) == ""


@given(st.text(max_size=40) | st.text("ab./\\: ", max_size=12))
def test_a_path_without_problem_stays_below_its_folder(path):
    if problem_of_relative_path(path):
        return
    assert not {"", ".", ".."} & set(path.split("/"))
    assert not set(path) & set("\\:\x00\n")
    assert posixpath.normpath(path) == path
    assert not ntpath.isabs(path)
    assert ntpath.normpath(path) == path.replace("/", "\\")
