"""Fuzzes one target in this process, which libFuzzer ends: `fuzz_one.py TARGET OPTION...`."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1]), str(FOLDER.parent / "support")]

import atheris  # noqa: E402 - the folder of the test kit comes first

with atheris.instrument_imports(include=["stagewire", "coordinator", "yaml"]):
    from testkit.fuzz_targets import CANARY, TARGETS, find_a_defect

atheris.Setup(sys.argv, {**TARGETS, CANARY: find_a_defect}[sys.argv.pop(1)])
atheris.Fuzz()
