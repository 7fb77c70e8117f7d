"""Decided before anything is fetched or started: where every stage goes, and whether it fits."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Final

from coordinator.app.design import Design, make_design
from coordinator.app.expectation import expected_rows
from coordinator.app.preparation import checkout_root
from coordinator.app.settings import Settings
from coordinator.devices.cores import probe_cores
from coordinator.devices.doctor import CheckState, check_loopback
from coordinator.devices.loopback import probe_loopback
from coordinator.devices.memory import probe_memory
from coordinator.plan.loading import LoadedPlan
from coordinator.plan.pipelines import require_pipelines
from stagewire.errors import ConstraintExceededError, LoopbackDownError, StageError

_MIB: Final = 1 << 20


def require_loopback() -> None:
    """Checks the one network that is needed.

    Raises:
        LoopbackDownError: it is down.
    """
    found = check_loopback(probe_loopback())
    if found.state is CheckState.FAIL:
        raise LoopbackDownError(f"{found.found}; {found.remedy}")


def design_run(settings: Settings, loaded: LoadedPlan) -> Design:
    """Decides a run: where every stage goes and whether it fits.

    Raises:
        StageError: it does not; the message says what to change, and a note which pipelines fit.
    """
    require_pipelines(settings.pipelines, loaded.plan.pipelines)
    try:
        return _design(settings, loaded)
    except ConstraintExceededError as refusal:
        asked = settings.pipelines or tuple(loaded.plan.pipelines)
        fitting = [*_fitting(asked, settings, loaded)] if len(asked) > 1 else []
        if fitting:
            refusal.add_note(f"of its pipelines, each of these fits alone: {', '.join(fitting)}")
        raise


def _design(settings: Settings, loaded: LoadedPlan) -> Design:
    return make_design(
        loaded.plan,
        expected_rows(loaded.plan, checkout_root(), is_fake=settings.is_fake),
        probe_memory(),
        pipelines=settings.pipelines,
        quota_bytes=settings.quota_bytes,
        cores=probe_cores(),
    )


def _fitting(asked: Iterable[str], settings: Settings, loaded: LoadedPlan) -> Iterator[str]:
    for name in asked:
        with contextlib.suppress(StageError):
            alone = _design(dataclasses.replace(settings, pipelines=(name,)), loaded)
            lines = alone.ledger.snapshot().constraints
            size_mib = -(-max(line.reserved_bytes for line in lines) // _MIB)
            yield f"`--pipeline {name}` ({size_mib} MiB)"
