"""What a library says of a load, as an operator reads it."""

import sys
from pathlib import Path

import pytest

from stagewire.worker.order import library_text

pytestmark = pytest.mark.unit

HOME = Path.home()


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("libgomp.so.1: cannot open it", "libgomp.so.1: cannot open it"),
        ("Load model from /models/a model/net.onnx failed", "Load model from net.onnx failed"),
        (f"not in x ({sys.prefix}/lib/python3/x/__init__.py)", "not in x (__init__.py)"),
        (f"{HOME}/some where/file is odd", "/some where/file is odd"),
        ("at /build/src/graph.cc:41 void f(int)", "at graph.cc:41 void f(int)"),
        (r"C:\Users\me\net.onnx is odd", "net.onnx is odd"),
        ("two\n  lines", "two lines"),
        ("3 and/or 4", "3 and/or 4"),
        ("x" * 1000, "x" * 300),
    ],
)
def test_it_is_one_line_without_folders_of_this_machine(said, shown):
    assert library_text(RuntimeError(said), Path("/models/a model/net.onnx")) == shown
