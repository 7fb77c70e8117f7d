"""Generates docs/errors.md from the failure table in sdk/stagewire/errors.py.

Run by `poe docs`; a test compares the committed page with `render()`.
"""

from pathlib import Path
from typing import Final

from stagewire.errors import ExitCode, Fault, Refusal, StageError, every_failure

PAGE: Final = Path(__file__).resolve().parent / "errors.md"

EXIT_CODE_MEANINGS: Final = {
    ExitCode.OK: "it worked",
    ExitCode.FAULT: "an accident: the same command may work later",
    ExitCode.REFUSED: "refused: change what the message names first",
    ExitCode.MISSED: "it ran, and did not do what was expected of it",
    ExitCode.USAGE: "the command line cannot be read, such as a mistyped option",
    ExitCode.INTERNAL: "a defect of Stagewire; please report it",
    ExitCode.HELD: "another coordinator holds the state folder or the port",
    ExitCode.UNSAFE_CONFIGURATION: "it would be reachable without protection, so it did not start",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
}

HEAD: Final = """\
# When it says no: every failure

<!-- Generated from sdk/stagewire/errors.py by `poe docs`. Do not edit. -->

Every failure that a caller, the author of a plan or an operator may see has one **reason**. Match
on the reason, never on the text: texts may improve from one version to the next, a reason keeps
its meaning.

* A **refusal** is a decision. Something must change before asking again; asking changed nothing.
* A **fault** is an accident. The same request may work later.

Over gRPC a failure is the status of the call. Its code stands in the table; the trailer
`stagewire-failure-bin` holds a `stagewire.v1.Failure` with the reason, a message for people, the
facts behind the message as named values and, where waiting helps, a retry delay. In Python the
client raises the class of that reason from `stagewire.errors`, with `reason`, `message`, `facts`
and `retry_delay_ms`. A command prints the reason and the message, and ends with the exit code.

Where **again** says yes, a client repeats a request by itself, if its caller said that it may run
twice (`idempotent=True`).

A message that reaches a client holds no path, process id or text of an exception. What lies behind
an `INTERNAL_FAULT` stands in the log of the coordinator.
"""

TABLE_HEAD: Final = """\
| Reason | gRPC code | Exit | Again | Meaning | What to do |
| --- | --- | ---: | --- | --- | --- |
"""


def render() -> str:
    """Returns the whole page."""
    failures = every_failure()
    refusals = [failure for failure in failures if issubclass(failure, Refusal)]
    faults = [failure for failure in failures if issubclass(failure, Fault)]
    exit_codes = "".join(f"| {code.value} | {EXIT_CODE_MEANINGS[code]} |\n" for code in ExitCode)
    return (
        HEAD
        + "\n## Refusals\n\n"
        + TABLE_HEAD
        + "".join(map(_row, refusals))
        + "\n## Faults\n\n"
        + TABLE_HEAD
        + "".join(map(_row, faults))
        + "\n## Exit codes\n\n| Exit | Meaning |\n| ---: | --- |\n"
        + exit_codes
    )


def _row(failure: type[StageError]) -> str:
    meaning = " ".join((failure.__doc__ or "").split())
    cells = (
        f'<a id="{failure.reason}"></a>`{failure.reason}`',
        f"`{failure.code.name}`",
        str(failure.exit_code.value),
        "yes" if failure.is_retryable else "",
        meaning,
        failure.recovery,
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
