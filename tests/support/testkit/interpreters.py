"""Interpreters that a plan may name, and that run other code in place of the fake worker."""

import shlex
import sys
from pathlib import Path
from typing import Any

from testkit import plans

FAKE = "import runpy; runpy.run_module('stagewire.worker.fake', run_name='__main__')\n"
"""What the fake worker is."""
SILENT = "import time; time.sleep(600)\n"
"""Never says a word."""
HELLO_ALONE = """
import asyncio
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.host import Host
from stagewire.worker.link import ControlLink
from stagewire.worker.start import read_start

async def main(start):
    link = ControlLink(start.address)
    await link.greet(Host([FakeExecutor()], start)._hello())
    await asyncio.Event().wait()

asyncio.run(main(read_start()))
"""
"""Says Hello, and answers no order."""


def once_then(folder: Path, code: str) -> str:
    """Returns code that is the fake worker when it is run first, and `code` from then on."""
    mark = folder / "was-run"
    return (
        f"import pathlib\nmark = pathlib.Path({str(mark)!r})\nis_first = not mark.exists()\n"
        f"mark.touch()\nexec({FAKE!r} if is_first else {code!r})\n"
    )


def interpreter(folder: Path, code: str, real: Path = Path(sys.executable)) -> str:
    """Writes an interpreter that runs `code` as the fake worker; returns its path.

    It is `real` in everything else.
    """
    program = folder / "worker.py"
    program.write_text(code)
    path = folder / "python"
    python, other = shlex.quote(str(real)), shlex.quote(str(program))
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *"-m stagewire.worker.fake") exec {python} -I {other};; esac\n'
        f'exec {python} "$@"\n'
    )
    path.chmod(0o700)
    return str(path)


def run_by(plan: plans.Plan, worker: str, path: str) -> plans.Plan:
    """Has a worker of a plan run by an interpreter."""
    entry: dict[str, Any] = plan["workers"][worker]
    entry["interpreter"] = {"linux": path}
    return plan
