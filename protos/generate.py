# /// script
# requires-python = ">=3.10,<3.13"
# dependencies = ["grpcio-tools==1.66.2", "mypy-protobuf==3.6.0", "setuptools<81"]
# ///
"""Generates the committed stubs in sdk/stagewire/v1 from protos/stagewire/v1.

Run by `uv run --locked --script protos/generate.py [--check]`; the versions in its own lock are the
oldest that coordinator and workers support, because newer stubs do not load under older runtimes.
"""

import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTOS = Path(__file__).resolve().parent
TARGET = PROTOS.parent / "sdk" / "stagewire" / "v1"
SERVICES = {"gateway", "coordinator", "management"}


def generate(folder: Path) -> dict[str, str]:
    """Returns the text of every stub by file name."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    files = sorted((PROTOS / "stagewire" / "v1").glob("*.proto"))
    arguments = [
        "protoc",
        f"-I{PROTOS}",
        f"-I{well_known}",
        f"--python_out={folder}",
        f"--mypy_out=quiet:{folder}",
        *(str(file.relative_to(PROTOS)) for file in files),
    ]
    services = [str(f.relative_to(PROTOS)) for f in files if f.stem in SERVICES]
    grpc = ["protoc", f"-I{PROTOS}", f"-I{well_known}", f"--grpc_python_out={folder}", *services]
    for command in (arguments, grpc):
        if protoc.main(command) != 0:
            raise SystemExit("protoc failed")
    return {file.name: file.read_text() for file in sorted((folder / "stagewire" / "v1").iterdir())}


def main() -> None:
    """Writes the stubs, or with --check only compares them."""
    with tempfile.TemporaryDirectory() as folder:
        stubs = generate(Path(folder))
    committed = {f.name: f.read_text() for f in TARGET.glob("*_pb2*")}
    if "--check" in sys.argv[1:]:
        stale = sorted(
            n for n in stubs.keys() | committed.keys() if stubs.get(n) != committed.get(n)
        )
        if stale:
            raise SystemExit(f"stubs are stale, run `poe protos`: {', '.join(stale)}")
        return
    for name in committed.keys() - stubs.keys():
        (TARGET / name).unlink()
    for name, text in stubs.items():
        (TARGET / name).write_text(text)


if __name__ == "__main__":
    main()
