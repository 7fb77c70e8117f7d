"""Files of records: every run writes one, some are kept and committed."""

import json
from pathlib import Path
from typing import Final

from benchmarks.judging.record import Record, RecordUnreadableError, from_json, to_json
from benchmarks.running.provenance import ROOT, without_homes

FOLDER: Final = ROOT / "benchmarks" / "results"
RUNS: Final = "runs"
"""Folder of the runs that are not kept; git ignores it."""


class NotKeptError(Exception):
    """A record does not deserve to be kept."""


def write(record: Record, folder: Path = FOLDER) -> Path:
    """Writes the record of a run; returns where."""
    stamp = record.started.replace(":", "").replace("-", "").partition("+")[0]
    path = folder / RUNS / f"{_name(record)}-{stamp}.json"
    write_to(path, record)
    return path


def write_to(path: Path, record: Record) -> None:
    """Writes a record into a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(without_homes(to_json(record)), indent=1, sort_keys=True)
    path.write_text(f"{content}\n", encoding="utf-8")


def read(path: Path) -> Record:
    """Reads a record.

    Raises:
        RecordUnreadableError: it is none.
    """
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordUnreadableError) as error:
        raise RecordUnreadableError(f"{path}: {error}") from None


def keep(record: Record, folder: Path = FOLDER) -> Path:
    """Writes a record beside those that are committed, under its benchmark and date.

    Raises:
        NotKeptError: nobody could repeat it.
    """
    if record.provenance.get("is_dirty") or not record.provenance.get("commit"):
        raise NotKeptError("the run measured what no commit has; commit first, and run again")
    name = f"{_name(record)}-{record.started[:10]}"
    path = folder / f"{name}.json"
    number = 2
    while path.exists():
        path = folder / f"{name}-{number}.json"
        number += 1
    write_to(path, record)
    return path


def kept(folder: Path = FOLDER) -> tuple[Record, ...]:
    """Returns all kept records, oldest first.

    Raises:
        RecordUnreadableError: one of the files is none.
    """
    return tuple(sorted(map(read, folder.glob("*.json")), key=lambda item: item.started))


def latest(folder: Path = FOLDER) -> dict[str, Record]:
    """Returns the last kept record of each benchmark, comparisons of settings apart."""
    return {record.bench: record for record in kept(folder) if not record.knob}


def compared(folder: Path = FOLDER) -> tuple[Record, ...]:
    """Returns the last kept comparison of each knob, oldest first."""
    last = {(item.bench, item.knob["title"]): item for item in kept(folder) if item.knob}
    return tuple(sorted(last.values(), key=lambda item: item.started))


def _name(record: Record) -> str:
    return f"ab-{record.bench}" if record.knob else record.bench
