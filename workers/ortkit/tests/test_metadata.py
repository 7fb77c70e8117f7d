"""What the maker of a model wrote into its file."""

import onnx
import pytest
from onnx import TensorProto, helper

from ortkit import read_metadata
from stagewire.errors import FormatUnsupportedError

pytestmark = pytest.mark.integration


@pytest.fixture
def model() -> onnx.ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "tiny", [value], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_texts_are_read_by_their_keys(model, tmp_path):
    texts = {"character": "a\n語\n ", "empty": "", "long": "x" * 100_000}
    helper.set_model_props(model, texts)
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))

    assert read_metadata(path) == texts


def test_a_model_may_have_none(model, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path))

    assert read_metadata(path) == {}


@pytest.mark.parametrize("content", [b"", b"not a model at all", b"\x72\x05ab"])
def test_what_is_no_model_is_refused(tmp_path, content):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)

    with pytest.raises(FormatUnsupportedError, match="not an ONNX model"):
        read_metadata(path)


def test_every_cut_of_a_model_is_read_or_refused(model, tmp_path):
    helper.set_model_props(model, {"character": "abc"})
    content = model.SerializeToString()
    path = tmp_path / "model.onnx"
    for end in range(1, len(content)):
        path.write_bytes(content[:end])
        try:
            read_metadata(path)
        except FormatUnsupportedError:
            continue
