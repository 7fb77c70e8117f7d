"""Rules that hold for every test."""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

# One example may take any time: on a shared machine a quick one is slow now and then.
settings.register_profile("shared-machine", deadline=None)
settings.load_profile("shared-machine")

# --- nothing is skipped in CI ---


def is_in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def fail_if_skipped(report: Any) -> None:
    if is_in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        # A skip is reported as (file, line, reason).
        *place, reason = (
            report.longrepr if isinstance(report.longrepr, tuple) else (report.longrepr,)
        )
        report.outcome = "failed"
        report.longrepr = f"{':'.join(map(str, place))}: skipped, which CI forbids: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_skipped(report)
    return report


# --- nothing is left behind ---


class ErrorLog(logging.Handler):
    """Keeps what is logged as an error: a fault that nobody foresaw, which no test may cause."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # gRPC's own, when a call is cancelled in the moment in which a message of it arrives.
        if "invalid state" in record.getMessage():
            return
        self.lines.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(scope="session")
def warm_grpc() -> None:
    """Uses gRPC once: what it keeps for the life of the process is no leak of the first test."""
    import grpc.aio

    from stagewire.channel import make_server, open_channel

    async def serve() -> None:
        # Its poller would end whenever the last server is collected, and begin again.
        grpc.aio.init_grpc_aio()
        server = make_server([])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        with contextlib.suppress(RuntimeError):
            make_server([]).add_insecure_port(f"127.0.0.1:{port}")
        with open_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/none/None").future(b"")
            await asyncio.to_thread(call.exception)
        await server.stop(None)

    asyncio.run(serve())


@pytest.fixture
def error_log() -> Iterator[list[str]]:
    """Lines that were logged as errors; a test that expects some clears them."""
    handler = ErrorLog()
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)
    assert not handler.lines


@pytest.fixture
def leak_probe(warm_grpc, error_log, tmp_path_factory, monkeypatch) -> Iterator[Any]:
    """Sees to it that the test leaves nothing behind and causes no fault that nobody foresaw."""
    # Not above: a test of the skip rule uses this file alone.
    from testkit.leaks import LeakProbe

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
    probe = LeakProbe()
    yield probe
    probe.check()
