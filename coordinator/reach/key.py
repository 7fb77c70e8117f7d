"""The key of an environment: what must change for it to be built again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FORMAT_VERSION: Final = 1
"""Raised whenever this coordinator lays environments out differently."""


@dataclass(frozen=True, slots=True)
class InterpreterIdentity:
    """What makes two interpreters interchangeable for one environment."""

    version: str
    """Full version, such as "3.12.4"."""
    abi: str
    """Suffix of extension modules, such as "cpython-312-x86_64-linux-gnu"."""
    platform: str
    """Such as "linux-x86_64"."""


def environment_key(
    *,
    lock_sha256: str,
    interpreter: InterpreterIdentity,
    project_digests: Mapping[str, str],
    checkout: str = "",
) -> str:
    """Returns the key of an environment as lower-case hex.

    `project_digests` holds one digest for each project of this checkout that goes into the
    environment: the lock names those by path and says nothing of their content. `checkout` is set
    for an editable environment, which belongs to one folder.
    """
    parts = {
        "format": FORMAT_VERSION,
        "lock": lock_sha256,
        "interpreter": [interpreter.version, interpreter.abi, interpreter.platform],
        "projects": dict(sorted(project_digests.items())),
        "checkout": checkout,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
