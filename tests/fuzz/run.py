"""Fuzzes one reader after another: inputs that reach new code are changed again and again.

    python tests/fuzz/run.py [TARGET ...] [--seconds 20 | --runs 2000]

An input that finds a defect is kept in `crashes/`, where every test run tries it again.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER.parents[1]), str(FOLDER.parent / "support")]

from testkit.fuzz_corpus import CRASHES, inputs, keep, write_seeds  # noqa: E402 - from that folder
from testkit.fuzz_targets import CANARY, TARGETS  # noqa: E402

MOST_BYTES = 1 << 14
MOST_RSS_MIB = 1024
SLOWEST_SECONDS = 10
CRASHED = 77
"""Exit code of a run that found a defect."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=20, help="time for each target")
    parser.add_argument("--runs", type=int, help="number of inputs instead of a time")
    parser.add_argument("--keep", type=Path, default=CRASHES, help="folder of inputs with defects")
    parser.add_argument("--write-seeds", action="store_true", help="write the seeds anew")
    arguments = parser.parse_args()
    names = arguments.targets or list(TARGETS)
    if unknown := set(names) - {*TARGETS, CANARY}:
        parser.error(f"{', '.join(unknown)}: known are {', '.join(TARGETS)}")
    if arguments.write_seeds:
        write_seeds()
        return 0
    limit = f"-max_total_time={arguments.seconds}"
    if arguments.runs is not None:
        limit = f"-runs={arguments.runs}"
    return max(run(name, limit, arguments.keep) for name in names)


def run(name: str, limit: str, kept: Path) -> int:
    """Fuzzes a target in a process of its own; returns its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        known = inputs(name)
        for title, raw in known.items():
            corpus.joinpath(title).write_bytes(raw)
        began = time.monotonic()
        child = subprocess.run(
            [sys.executable, FOLDER / "fuzz_one.py", name, *options(folder), limit, corpus],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        took = time.monotonic() - began
        executed = re.search(r"number_of_executed_units: (\d+)", child.stderr)
        fresh = len(list(corpus.iterdir())) - len(known)
        print(
            f"{name}: {executed[1] if executed else 'no'} inputs in {took:.1f} s with the start,"
            f" {len(known)} seeds and {fresh} more that reached new code",
            flush=True,
        )
        for found in sorted(Path(folder).glob("found-*")):
            title = found.name.removeprefix("found-")[:24]
            file = keep(kept, name, title, found.read_bytes())
            print(f"{name}: found a defect; its input is now in {file}", flush=True)
    if child.returncode:
        said = [line for line in child.stderr.splitlines() if "INFO: Instrumenting" not in line]
        print(child.stdout[-4000:], *said[-80:], sep="\n", flush=True)
    return child.returncode


def options(folder: str) -> Iterator[str]:
    yield from ("-print_final_stats=1", f"-max_len={MOST_BYTES}", f"-timeout={SLOWEST_SECONDS}")
    yield from (f"-rss_limit_mb={MOST_RSS_MIB}", f"-error_exitcode={CRASHED}")
    yield f"-artifact_prefix={folder}/found-"


if __name__ == "__main__":
    raise SystemExit(main())
