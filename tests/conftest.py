"""Rules that hold for every test."""

import os
from collections.abc import Generator
from typing import Any

import pytest

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
