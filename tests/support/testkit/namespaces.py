"""Namespaces of the kernel: a network that is down, a disk that is small."""

import os
import subprocess

import pytest


def unshare(kind: str) -> list[str]:
    """Returns the beginning of a command that runs in a namespace of its own.

    Not every machine grants that, a container for one, and nothing stands in for it: there the test
    is left out. Where skipping is not allowed, the machine must grant it.
    """
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", f"--{kind}", *rights]
    tried = subprocess.run(
        [*command, "true"], capture_output=True, text=True, timeout=60, check=False
    )
    if tried.returncode:
        pytest.skip(f"no {kind} namespace may be made here: {tried.stderr.strip()}")
    return command
