"""The command line of the bench."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Mapping
from pathlib import Path

from benchmarks.judging.declarations import Benchmark

_EPILOG = """\
exit codes: 0 done, 1 no verdict, 2 refused, 3 a limit or a band was missed, 64 wrong usage,
70 internal fault, 75 another run has the machine, 130 interrupted
"""


def make_parser(benchmarks: Mapping[str, Benchmark]) -> ArgumentParser:
    """Returns the parser of the command line."""
    parser = ArgumentParser(
        prog="bench",
        description="Measures what the product costs beside doing the same work without it.",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--check",
        dest="records",
        type=Path,
        nargs="+",
        metavar="RECORD",
        help="compare records of runs with the last kept ones, and run nothing",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    running = _running()
    for benchmark in benchmarks.values():
        one = commands.add_parser(benchmark.name, parents=[running], help=benchmark.title)
        one.add_argument(
            "--check", action="store_true", help="compare with the last kept record too"
        )
        _complete(one, benchmark)
    _add_comparing(commands.add_parser("ab", help="two settings of one knob"), benchmarks)
    page = commands.add_parser("report", help="write the results of kept records on the page")
    page.add_argument("--page", type=Path, help="another page than docs/benchmarks.md")
    keeping = commands.add_parser("keep", help="keep the records of runs, to be committed")
    keeping.add_argument("records", type=Path, nargs="+", metavar="RECORD")
    return parser


def _running() -> ArgumentParser:
    shared = ArgumentParser(add_help=False)
    shared.add_argument("--rounds", type=int, help="rounds; the arms take turns in each")
    shared.add_argument("--json", type=Path, metavar="FILE", help="write the record there as well")
    shared.add_argument("--keep", action="store_true", help="keep the record, to be committed")
    shared.add_argument("--busy", action="store_true", help="measure on a busy machine too")
    shared.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait for a quiet machine"
    )
    return shared


def _complete(parser: ArgumentParser, benchmark: Benchmark) -> None:
    benchmark.add_options(parser)
    parser.set_defaults(benchmark=benchmark.name, default_rounds=benchmark.rounds)


def _add_comparing(parser: ArgumentParser, benchmarks: Mapping[str, Benchmark]) -> None:
    commands = parser.add_subparsers(dest="benchmark", required=True, metavar="BENCHMARK")
    running = _running()
    for benchmark in benchmarks.values():
        one = commands.add_parser(benchmark.name, parents=[running], help=benchmark.title)
        knob = one.add_mutually_exclusive_group(required=True)
        knob.add_argument(
            "--env", nargs=3, metavar=("NAME", "A", "B"), help="a variable; `unset` removes it"
        )
        knob.add_argument(
            "--field", nargs=3, metavar=("PATH", "A", "B"), help="a field of the plan, by its path"
        )
        knob.add_argument("--revision", nargs=2, metavar=("A", "B"), help="revisions of git")
        one.add_argument(
            "--in",
            dest="reach",
            default=benchmark.reach,
            metavar="ROLE",
            help="processes that the variable must reach (default: %(default)s)",
        )
        _complete(one, benchmark)
