"""Every way in which an index fails, with the real uv: one sentence that says what to do."""

import pytest

from stagewire.errors import ArtifactCorruptError, ArtifactUnavailableError
from testkit.index import Index

pytestmark = pytest.mark.integration

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
CONTENT = b"weights" * 1000


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """One attempt: what fails here fails again."""
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


def artifact_of(bench, index):
    source = index.add("first", {"first/model": CONTENT})
    return bench.make({"m": (bench.sha256(CONTENT), len(CONTENT), [f"{source}first/model"])})


def refusal(bench, artifact, kind=ArtifactUnavailableError):
    with pytest.raises(kind) as caught:
        bench.pull(artifact)
    assert bench.everything() == set(), "nothing is left behind"
    assert "pypi:first==1.0" in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (404, "not any more"),
        (410, "not any more"),
        (401, "who asks"),
        (403, "who asks"),
        (500, "try again later"),
        (503, "try again later"),
    ],
)
@pytest.mark.parametrize("what", ["page_status", "wheel_status"])
def test_an_index_that_does_not_give_it(bench, index, what, status, remedy):
    artifact = artifact_of(bench, index)
    setattr(index, what, status)
    assert remedy in refusal(bench, artifact)


def test_a_wheel_that_was_never_there(bench, index):
    artifact = artifact_of(bench, index)
    index.wheels.clear()
    assert "not any more" in refusal(bench, artifact)


def test_another_wheel_under_the_same_name(bench, index):
    artifact = artifact_of(bench, index)
    index.add("first", {"first/model": b"other"})
    assert "do not trust the index" in refusal(bench, artifact, ArtifactCorruptError)


def test_an_index_whose_certificate_nobody_trusts(bench, index, monkeypatch):
    artifact = artifact_of(bench, index)
    other = Index()
    other.wheels = index.wheels
    with other.serving(is_secure=True) as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        assert "SSL_CERT_FILE" in refusal(bench, artifact)


def test_nobody_listens(bench, index, monkeypatch):
    artifact = artifact_of(bench, index)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    assert "check the network" in refusal(bench, artifact)


def test_a_name_that_nobody_knows(bench, index, monkeypatch):
    artifact = artifact_of(bench, index)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://index.invalid/simple")
    assert "connect this machine to a network" in refusal(bench, artifact)


def test_an_index_that_is_no_address(bench, index, monkeypatch):
    artifact = artifact_of(bench, index)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://[nonsense")
    assert "UV_DEFAULT_INDEX" in refusal(bench, artifact)


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "http://proxy.invalid:3128"])
def test_a_proxy_that_does_not_answer(bench, index, monkeypatch, proxy):
    artifact = artifact_of(bench, index)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")
    for name in PROXIES:
        monkeypatch.setenv(name, proxy)
        monkeypatch.setenv(name.lower(), proxy)
    assert "HTTPS_PROXY" in refusal(bench, artifact)


def test_a_network_that_is_forbidden(bench, index, monkeypatch):
    artifact = artifact_of(bench, index)
    monkeypatch.setenv("UV_OFFLINE", "1")
    assert "unset UV_OFFLINE" in refusal(bench, artifact)


def test_a_download_that_breaks_off(bench, index):
    artifact = artifact_of(bench, index)
    index.wheels["first"] = index.wheels["first"][:100]
    with pytest.raises((ArtifactCorruptError, ArtifactUnavailableError)):
        bench.pull(artifact)
    assert bench.everything() == set()
