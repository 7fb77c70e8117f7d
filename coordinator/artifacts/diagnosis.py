"""What the last lines of uv mean for a person: the cause in a sentence, and what to do. Pure."""

import re
from collections.abc import Iterable
from typing import Final

_KNOWN: Final[tuple[tuple[str, str], ...]] = (
    (
        r"unexpected argument|unrecognized subcommand",
        "uv is too old for this version; run `uv sync` to install the one that belongs to it",
    ),
    (
        r"hash mismatch",
        "the index serves other bytes than the lock names; do not trust that index, or"
        " look in UV_DEFAULT_INDEX whether it is the one that you mean",
    ),
    (
        r"invalid peer certificate|unknownissuer|certificate verify failed|self[- ]signed"
        r"|certificate has expired|notvalidforname",
        "the certificate of the index is not trusted here; behind a proxy that reads along set"
        " UV_SYSTEM_CERTS=1, or name its certificate in SSL_CERT_FILE",
    ),
    (
        r"tunnel error|proxy",
        "the proxy does not answer; correct HTTPS_PROXY and ALL_PROXY, or unset them",
    ),
    (
        r"network (was|is) disabled|network connectivity is disabled",
        "the network may not be used; unset UV_OFFLINE, or allow the download",
    ),
    (
        r"dns error|failed to lookup address|name or service not known",
        "the name of the index cannot be found; connect this machine to a network, or set"
        " UV_DEFAULT_INDEX to an index that it reaches",
    ),
    (
        r"connection refused|connect error|network is unreachable|no route to host"
        r"|connection reset|timed out|operation timeout|connection closed|error sending request"
        r"|end of file before message length|incompletemessage|error decoding response body",
        "the index does not answer; check the network, then start again: what has arrived is kept",
    ),
    (
        r"\b(401|403)\b (unauthorized|forbidden)|status code (401|403)",
        "the index wants to know who asks; put name and password into the address in"
        " UV_DEFAULT_INDEX",
    ),
    (
        r"\b(404|410)\b (not found|gone)|was not found in the package registry"
        r"|there is no version of",
        "the index does not have it, or not any more; set UV_DEFAULT_INDEX to one that has it, or"
        " update to a version that needs another",
    ),
    (
        r"\b5\d\d\b (internal server error|bad gateway|service unavailable|gateway time)",
        "the index is out of order; try again later",
    ),
    (
        r"expected (index )?url|relative url without a base|invalid value .* for .*index"
        r"|failed to parse.*url|couldn't parse",
        "an address in UV_DEFAULT_INDEX or UV_INDEX is none; correct or unset it",
    ),
    (
        r"failed to initialize cache",
        "uv cannot use its own cache; name a folder that can be written with UV_CACHE_DIR",
    ),
    (r"too many open files", "this process may not open more files; raise `ulimit -n`"),
    (
        r"resource temporarily unavailable|threadpoolbuilderror|failed to spawn thread",
        "this user may not start more processes; raise `ulimit -u`",
    ),
    (
        r"permission denied|read-only file system",
        "a folder cannot be written; name another with STAGEWIRE_CACHE, UV_CACHE_DIR or TMPDIR,"
        " as the path says",
    ),
    (
        r"exec format error|cannot execute|no such file or directory \(os error 2\).*\buv\b",
        "uv is damaged or made for another machine; run `uv sync --reinstall-package uv`",
    ),
)
"""Patterns in lower case, the most telling first: one failure shows several of them."""
_MEANINGS: Final = tuple((re.compile(pattern), meaning) for pattern, meaning in _KNOWN)


def diagnosis(lines: Iterable[str]) -> str:
    """Returns what the last lines of uv come down to; empty where they are not known."""
    text = "\n".join(lines).lower()
    return next((meaning for pattern, meaning in _MEANINGS if pattern.search(text)), "")
