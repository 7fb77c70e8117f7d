"""What a worker executes at this moment, in a piece of memory that outlives it.

The coordinator makes the memory and hands it to the worker, each of whose threads notes there which
execution it runs. Messages may be lost with a process that dies; this is what is left of it.
"""

import struct
from typing import Final

ENTRIES: Final = 512
"""Executions that are noted at once; what is more is not."""
ENTRY_BYTES: Final = 8
RECORD_BYTES: Final = ENTRIES * ENTRY_BYTES


def noted(record: bytes) -> frozenset[int]:
    """Returns the executions that a record holds."""
    count = len(record) // ENTRY_BYTES
    return frozenset(struct.unpack_from(f"={count}Q", record)) - {0}
