"""What a worker says about its own environment: installed distributions and thread settings."""

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Iterable
from typing import Final

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def attest_distributions(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Returns version and SHA-256 of the RECORD of each named distribution by its normalized name.

    A distribution that is not installed is left out. One without a RECORD, as system packages are,
    has an empty digest.
    """
    attested: dict[str, tuple[str, str]] = {}
    for name in names:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        record = distribution.read_text("RECORD")
        digest = "" if record is None else hashlib.sha256(record.encode()).hexdigest()
        attested[re.sub(r"[-_.]+", "-", name).lower()] = (distribution.version, digest)
    return attested


def thread_settings() -> dict[str, str]:
    """Returns the variables that bound the threads of libraries, as far as they are set."""
    return {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
