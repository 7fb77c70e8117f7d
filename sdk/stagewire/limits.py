"""The one table of limits; each is enforced before anything is allocated."""

import re
from typing import Final

INLINE_BYTES: Final = 64 << 10
"""Largest tensor that travels whole beside its descriptor."""
CHUNK_BYTES: Final = 1 << 20
"""Payload of one chunk of a larger tensor."""
MESSAGE_BYTES: Final = 4 << 20
"""Largest message on Exchange and on the public services: a Windows peer dies above 8 MiB."""
CONTROL_MESSAGE_BYTES: Final = 16 << 10
"""Largest message on Attach."""
HEADER_BYTES: Final = 64 << 10
"""Largest part of a client's message or of an envelope beside its payload: a million empty fields
fit into one message, and each would become an object."""
METADATA_BYTES: Final = 8 << 10
"""Largest metadata of one call."""

TENSOR_RANK: Final = 8
TENSOR_DIMENSION: Final = 1 << 40
TENSOR_BYTES: Final = 1 << 30
"""Largest tensor, whatever a port allows."""
STRING_ELEMENTS: Final = 1 << 20
"""Most elements of a tensor of strings."""

WINDOW_ITEMS: Final = 64
"""Items that may be under way on one edge of one request."""
WINDOW_BYTES: Final = 8 << 20
"""Payload bytes that may be under way on one edge of one request; a larger item passes alone."""
ENVELOPE_MESSAGES: Final = 64
"""Most messages joined into one envelope."""

ID_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
"""Form of the ids of workers, stages, ports, pipelines, artifacts and requests."""
FAILURE_TEXT_BYTES: Final = 4 << 10
CONCURRENT_CALLS: Final = 64
"""Calls of one connection at once."""
REQUESTS: Final = 256
"""Requests that one coordinator runs at once."""
REMEMBERED_REQUESTS: Final = 4096
"""Finished request ids that are remembered to refuse a repetition."""
SUSPECTS: Final = 1024
"""Request ids that are remembered because a worker died while it executed them."""
SESSIONS: Final = 64
"""Sessions that one coordinator keeps open at once."""
SESSION_SECONDS: Final = 300.0
"""Lease of a session whose caller names none."""
SESSION_LONGEST_SECONDS: Final = 24 * 3600.0
"""Longest lease of a session."""
SESSION_STATE_BYTES: Final = 4 << 20
"""Most that one stage keeps for one session, as it says itself."""
ATTEMPTS: Final = 4
"""Most attempts at one idempotent request, with the first."""
TOMBSTONE_SECONDS: Final = 60.0
"""Time for which a cancel that overtook its start is remembered."""

PLAN_BYTES: Final = 1 << 20
PLAN_DEPTH: Final = 16
PLAN_NODES: Final = 10_000
"""Most mappings, lists and scalars of a plan; a sample plan has some hundreds."""
LOG_BYTES: Final = 8 << 20
"""Size at which the log of a worker is rotated; one older file is kept."""
LOG_LINE_BYTES: Final = 16 << 10

MEDIA_BYTES: Final = 256 << 20
"""Largest file that is read as audio or as an image."""
AUDIO_CHANNELS: Final = 64
AUDIO_RATE: Final = 768_000
AUDIO_SAMPLES: Final = 128 << 20
"""Most samples of a recording, its channels mixed: those of the largest file of 16 bits."""
IMAGE_PIXELS: Final = 64 << 20
TEXT_BYTES: Final = 1 << 20
"""Most bytes of the texts or byte strings of one item, without the lengths between them; largest
text that is read from a file."""
ENDPOINT_BYTES: Final = 16 << 10
"""Largest endpoint file."""


def matches_id(text: str) -> bool:
    """Whether a text has the form of an id."""
    return re.match(ID_PATTERN, text) is not None and "\n" not in text
