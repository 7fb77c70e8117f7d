"""Entry: `python -m benchmarks voice|hop`. Exit code 3 when a criterion is missed."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from benchmarks import hop, machine, report, versions, voice, voice_report
from benchmarks.figures import Criterion

OK: Final = 0
REFUSED: Final = 2
MISSED: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one benchmark; returns the exit code."""
    options = _parser().parse_args(arguments)
    seen = machine.wait_until_quiet(options.wait)
    if not seen.is_quiet:
        print(
            f"the load average is {seen.load:.2f}, over {machine.QUIET_LOAD}: figures would tell of"
            " the neighbours. Wait (--wait SECONDS), or measure anyway (--busy).",
            file=sys.stderr,
        )
        if not options.busy:
            return REFUSED
    with tempfile.TemporaryDirectory(prefix="stagewire-bench-") as folder:
        text, content, criteria = options.run(Path(folder), options)
    own = versions.own() | content.pop("versions", {})
    print()
    print(report.machine_lines(seen, own))
    print()
    print(text)
    if options.json is not None:
        content = {"machine": asdict(seen), "versions": own, **content}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return OK if all(item.is_met for item in criteria) else MISSED


Outcome = tuple[str, dict[str, Any], Sequence[Criterion]]
"""Readable report, JSON, criteria."""


def _voice(folder: Path, options: argparse.Namespace) -> Outcome:
    measured = voice.measure(
        folder, rounds=options.rounds or 5, starts=options.starts, is_agreed=options.yes
    )
    conclusion = voice_report.conclude(measured)
    content = voice_report.to_json(measured, conclusion)
    content["versions"] = dict(measured.loaded["versions"])
    return voice_report.lines(measured, conclusion), content, conclusion.criteria


def _hop(folder: Path, options: argparse.Namespace) -> Outcome:
    measured = hop.measure(folder, rounds=options.rounds or 20, batch=options.batch)
    return hop.lines(measured), hop.to_json(measured), hop.criteria(measured)


def _parser() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--rounds", type=int, help="rounds; both sides take turns in each")
    shared.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    shared.add_argument("--busy", action="store_true", help="measure on a busy machine too")
    shared.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait for a quiet machine"
    )
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    spoken = commands.add_parser("voice", parents=[shared], help="a spoken question, both ways")
    spoken.add_argument("--starts", type=int, default=3, help="measured starts of the product")
    spoken.add_argument("--yes", action="store_true", help="download what is missing")
    spoken.set_defaults(run=_voice)
    small = commands.add_parser("hop", parents=[shared], help="1 KiB from worker to worker")
    small.add_argument("--batch", type=int, default=500, help="items of a batch")
    small.set_defaults(run=_hop)
    return parser


if __name__ == "__main__":
    sys.exit(main())
