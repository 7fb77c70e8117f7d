"""Attestation: whether a worker runs the code that its environment was built of."""

import base64
import csv
import hashlib
from collections.abc import Iterable
from pathlib import Path

from coordinator.reach.naming import normalized


def record_digests(python_site: Path, names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of the RECORD of each named distribution in a site-packages folder.

    A name without a RECORD is left out. Line ends are normalized as `importlib.metadata` does it in
    the worker.
    """
    wanted = {normalized(name) for name in names}
    digests = {}
    for folder in python_site.glob("*.dist-info"):
        name = normalized(folder.name.split("-", 1)[0])
        record = folder / "RECORD"
        if name in wanted and record.is_file():
            text = record.read_text(encoding="utf-8")
            digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def damaged_distributions(python_site: Path) -> list[str]:
    """Returns the distributions of a site-packages folder that lack or differ in a file.

    Reads every file and compares it with the RECORD that names it.
    """
    damaged = []
    for folder in sorted(python_site.glob("*.dist-info")):
        try:
            with (folder / "RECORD").open(encoding="utf-8", newline="") as record:
                is_whole = all(_is_as_recorded(python_site, row) for row in csv.reader(record))
        except (OSError, ValueError):
            is_whole = False
        if not is_whole:
            damaged.append(normalized(folder.name.split("-", 1)[0]))
    return damaged


def _is_as_recorded(python_site: Path, row: list[str]) -> bool:
    path, digest, *_ = (*row, "", "")
    algorithm, _, expected = digest.partition("=")
    if algorithm != "sha256":
        # RECORD itself and what is compiled later have no digest.
        return True
    with (python_site / path).open("rb") as file:
        found = hashlib.file_digest(file, "sha256").digest()
    return base64.urlsafe_b64encode(found).decode().rstrip("=") == expected
