"""What the bench does for each command line."""

import contextlib
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.judging import bands, chart, page
from benchmarks.judging.declarations import Benchmark
from benchmarks.judging.page import PageBrokenError
from benchmarks.judging.proofs import Knob, NotProvenError
from benchmarks.judging.record import Record, RecordUnreadableError
from benchmarks.judging.tables import band_table, finding_table, value_table
from benchmarks.judging.verdicts import is_missed, is_open, judge, remarks
from benchmarks.options import make_parser
from benchmarks.running import bench, comparing, lock, preflight, results
from benchmarks.running.provenance import ROOT
from benchmarks.running.results import NotKeptError
from benchmarks.running.rounds import Conditions, RunStoppedError
from benchmarks.suite import BENCHMARKS

OK: Final = 0
OPEN: Final = 1
REFUSED: Final = 2
MISSED: Final = 3
USAGE: Final = 64
INTERNAL: Final = 70
HELD: Final = 75
INTERRUPTED: Final = 130
PAGE: Final = ROOT / "docs" / "benchmarks.md"


def main(
    arguments: Sequence[str] | None = None,
    *,
    benchmarks: Mapping[str, Benchmark] = BENCHMARKS,
    lock_path: Path | None = None,
    results_folder: Path = results.FOLDER,
) -> int:
    """Does what a command line says; returns the exit code."""
    parser = make_parser(benchmarks)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:
        return USAGE if end.code else OK
    try:
        match options.command:
            case None if options.records:
                return _check_records(options.records, results_folder)
            case None:
                parser.print_help(sys.stderr)
                return USAGE
            case "report":
                return _write_page(options.page or PAGE, list(benchmarks), results_folder)
            case "keep":
                return _keep([results.read(path) for path in options.records], results_folder)
        with lock.held(lock_path or lock.default_path()):
            return _measure(benchmarks[options.benchmark], options, results_folder)
    except lock.HeldError as error:
        return _refuse(str(error), HELD)
    except RunStoppedError as error:
        return _refuse(str(error), OPEN)
    except (NotProvenError, NotKeptError, PageBrokenError, RecordUnreadableError) as error:
        return _refuse(str(error), REFUSED)
    except KeyboardInterrupt:
        return _refuse("interrupted", INTERRUPTED)
    except Exception as error:  # the outermost edge: 1 is the code of a run without a verdict
        traceback.print_exc()
        return _refuse(f"internal fault: {error}", INTERNAL)


def _measure(benchmark: Benchmark, options: Namespace, folder: Path) -> int:
    options.rounds = options.rounds or options.default_rounds
    seen = preflight.wait_until_quiet(options.wait, _say)
    if not seen.is_quiet:
        _say(f"the machine is not quiet: {seen.reason}")
        if not options.busy:
            return _refuse("wait (--wait SECONDS), or measure anyway (--busy)", REFUSED)
    knob = _knob(options)
    with _temporary() as place:
        conditions = Conditions(place, _timed_say())
        if knob is None:
            record = bench.run(benchmark, options, conditions, seen)
        else:
            record = comparing.run(benchmark, options, knob, conditions, seen)
    path = results.write(record, folder)
    if options.json is not None:
        results.write_to(options.json, record)
    _show(record)
    print(f"\nrecord    {_shown(path)}")
    code = _verdict(record)
    if knob is None and options.check:
        code = _worse(code, _check(record, folder))
    if options.keep:
        code = _worse(code, _keep([record], folder))
    return code


def _knob(options: Namespace) -> Knob | None:
    if options.command != "ab":
        return None
    if options.revision:
        return Knob("revision", "", tuple(options.revision))
    kind = "env" if options.env else "field"
    name, first, second = options.env or options.field
    return Knob(kind, name, (first, second), options.reach)


def _show(record: Record) -> None:
    findings = judge(record)
    print(f"\n{record.title}\n\n{page.origin(record)}\n")
    if record.knob:
        print(f"A is {record.knob['A']}, B is {record.knob['B']}; proof: {record.knob['proof']}\n")
    print(f"{value_table(record).plain()}\n\n{finding_table(findings).plain()}")
    for remark in remarks(record):
        print(f"note: {remark}")


def _verdict(record: Record) -> int:
    findings = judge(record)
    if is_missed(findings):
        return MISSED
    return OPEN if is_open(findings) else OK


def _check_records(paths: Sequence[Path], folder: Path) -> int:
    code = OK
    for path in paths:
        code = _worse(code, _check(results.read(path), folder))
    return code


def _check(record: Record, folder: Path) -> int:
    """Compares a record with the last kept one."""
    kept = results.latest(folder).get(record.bench)
    if kept is None or record.knob:
        return _refuse(f"no record of {record.bench} is kept to compare with", REFUSED)
    rows = bands.check(record, kept)
    print(f"\n{record.bench}: {record.started} beside {kept.started}, commit")
    print(f"{kept.provenance.get('commit', '')}\n\n{band_table(rows).plain()}")
    if bands.is_missed(rows):
        return MISSED
    return OPEN if bands.is_open(rows) else OK


def _keep(records: Sequence[Record], folder: Path) -> int:
    for record in records:
        print(f"kept      {_shown(results.keep(record, folder))}; next: poe bench report")
    return OK


def _write_page(path: Path, names: Sequence[str], folder: Path) -> int:
    kept = results.latest(folder)
    text = page.results(names, kept, results.compared(folder))
    path.write_text(page.insert(path.read_text(encoding="utf-8"), text), encoding="utf-8")
    print(f"wrote     {_shown(path)}")
    for name, content in charts(kept).items():
        file = path.parent / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8")
        print(f"wrote     {_shown(file)}")
    return OK


def charts(kept: Mapping[str, Record]) -> dict[str, str]:
    """Returns every chart of the page by its name beside the page."""
    return {
        page.chart_name(record, theme): chart.draw(record, theme)
        for record in kept.values()
        if chart.charted(record)
        for theme in chart.THEMES
    }


def _worse(one: int, other: int) -> int:
    """Returns the exit code that says more: a miss, then a refusal, then no verdict."""
    return max(one, other)


def _refuse(text: str, code: int) -> int:
    _say(text)
    return code


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _timed_say() -> "_Progress":
    return _Progress(time.monotonic())


class _Progress:
    """Says how a run goes on, with its age."""

    def __init__(self, start: float) -> None:
        self._start = start

    def __call__(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._start), 60)
        _say(f"{minutes:2}:{seconds:02} {text}")


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stagewire-bench-") as folder:
        yield Path(folder).resolve()


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
