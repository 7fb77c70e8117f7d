"""Attestation: whether a worker runs the code that its environment was built of."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from coordinator.reach.naming import normalized
from stagewire.errors import EnvironmentStaleError


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


def check_attestation(
    *,
    expected_key: str,
    expected: Mapping[str, str],
    reported_key: str,
    reported: Mapping[str, str],
) -> None:
    """Compares what a worker reports about its environment with what was built for it.

    Raises:
        EnvironmentStaleError: they differ; the message names the distributions.
    """
    if reported_key != expected_key:
        raise EnvironmentStaleError(
            f"the worker runs environment {reported_key[:12] or '(none)'}, built was"
            f" {expected_key[:12] or '(none)'}; start it again"
        )
    different = sorted(name for name in expected if reported.get(name) != expected[name])
    if different:
        raise EnvironmentStaleError(
            f"the worker runs other code than was built of {', '.join(different)}; start it again",
            distributions=", ".join(different),
        )
