"""What uv says is told in one sentence with what to do."""

import pytest

from coordinator.artifacts.diagnosis import diagnosis

pytestmark = pytest.mark.unit

LINES = {
    "  cause: tunnel error: failed to create underlying connection": "HTTPS_PROXY",
    "  cause: dns error": "UV_DEFAULT_INDEX",
    "  cause: invalid peer certificate: UnknownIssuer": "SSL_CERT_FILE",
    "  cause: tcp connect error": "check the network",
    "  cause: operation timed out": "check the network",
    "  cause: HTTP status client error (404 Not Found) for url (https://x/y.whl)": "not any more",
    "  cause: HTTP status client error (410 Gone) for url (https://x/y.whl)": "not any more",
    "  cause: HTTP status client error (401 Unauthorized) for url (https://x/)": "who asks",
    "  cause: HTTP status server error (503 Service Unavailable) for url (https://x/)": "later",
    "  cause: Hash mismatch for `first==1.0`": "do not trust",
    "error: unexpected argument '--no-emit-local' found": "uv is too old",
    "error: Failed to initialize cache at `/dev/null`": "UV_CACHE_DIR",
    "  cause: Too many open files (os error 24)": "ulimit -n",
    "  cause: Resource temporarily unavailable (os error 11)": "ulimit -u",
    "  cause: Permission denied (os error 13)": "cannot be written",
    "  cause: Read-only file system (os error 30)": "cannot be written",
}


@pytest.mark.parametrize(("line", "remedy"), LINES.items())
def test_a_known_line_says_what_to_do(line, remedy):
    assert remedy in diagnosis(["error: Failed to fetch", line, "hint: something"])


def test_of_several_causes_the_first_is_named():
    lines = [
        "  cause: tunnel error: unsuccessful",
        "  cause: tcp connect error",
        "  cause: dns error",
    ]
    assert "proxy" in diagnosis(lines)


@pytest.mark.parametrize("lines", [[], ["error: something that nobody has seen yet"]])
def test_what_is_not_known_is_left_to_the_lines_themselves(lines):
    assert diagnosis(lines) == ""
