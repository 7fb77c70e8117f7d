"""What runs where, as tables."""

from collections.abc import Iterable
from typing import Final

from coordinator.facts.proof import Grade
from coordinator.facts.sizes import format_size
from stagewire.client import CoordinatorState, Receipt, Table
from stagewire.client.state import Phase, StageState, WorkerState

_VERDICTS: Final = {
    "absent": "the device is not there",
    "init_failed": "the device could not be opened",
    "run_failed": "the example could not be run",
    "none": "nothing ran on the device",
    "partial": "a part of the example ran on the device",
    "full": "all of the example ran on the device",
    "wrong_numbers": "it ran, and what came out is wrong",
    "unmeasured": "no proof yet",
}


def stage_table(state: CoordinatorState) -> Table:
    """Returns one row for each stage."""
    return Table(
        (
            "stage",
            "worker",
            "device",
            "cores",
            "executor",
            "phase",
            "proof",
            "load",
            "memory / budget",
        ),
        tuple(
            (
                stage.stage_id,
                stage.worker_id,
                stage.device,
                stage.thread_settings.get("cores", "-"),
                stage.executor,
                doing(stage),
                f"{stage.verdict.name.lower()} {stage.grade.name}",
                seconds(stage.load_seconds),
                against(stage.measured_bytes, stage.reserved_bytes),
            )
            for stage in state.stages
        ),
    )


def worker_table(state: CoordinatorState) -> Table:
    """Returns one row for each worker."""
    return Table(
        ("worker", "kind", "phase", "restarts", "last reason", "memory / budget", "peak"),
        tuple(
            (
                worker.worker_id,
                worker.kind,
                worker.phase.name.lower(),
                str(worker.restarts),
                worker.last_reason or "-",
                worker_memory(worker),
                format_size(worker.peak_bytes) if worker.peak_bytes else "-",
            )
            for worker in state.workers
        ),
    )


def worker_prospects(state: CoordinatorState) -> str:
    """Returns what comes next for each worker that was lost, one a line."""
    return "\n".join(
        f"{worker.worker_id}: {worker.prospect}" for worker in state.workers if worker.prospect
    )


def pipeline_table(state: CoordinatorState) -> Table:
    """Returns one row for each pipeline."""
    return Table(
        ("pipeline", "ready", "inputs", "outputs"),
        tuple(
            (
                item.pipeline,
                "yes" if item.is_ready else "no",
                ", ".join(f"{port.name}: {port}" for port in item.inputs),
                ", ".join(f"{port.name}: {port}" for port in item.outputs),
            )
            for item in state.pipelines
        ),
    )


def limit_table(state: CoordinatorState) -> Table:
    """Returns one row for each constraint on memory."""
    return Table(
        ("constraint", "limit", "reserved", "grade"),
        tuple(
            (
                item.constraint,
                format_size(item.limit_bytes),
                format_size(item.reserved_bytes),
                item.grade.name,
            )
            for item in state.ledger.constraints
        ),
    )


def failed_budget_table(state: CoordinatorState) -> Table:
    """Returns one row for each budget that is too small, with what it lacks."""
    return Table(
        ("budget", "allows", "measured", "raise it by"),
        tuple(
            (
                f"{item.owner} {item.kind}",
                format_size(item.budget_bytes),
                format_size(item.measured_bytes),
                format_size(item.measured_bytes - item.budget_bytes),
            )
            for item in state.ledger.failed_budgets
        ),
    )


def legend(state: CoordinatorState) -> str:
    """Returns what the verdicts and grades of the stages mean, in one line."""
    verdicts = dict.fromkeys(stage.verdict.name.lower() for stage in state.stages)
    parts = [f"{name} = {_VERDICTS[name]}" for name in verdicts if name in _VERDICTS]
    return "; ".join((*parts, *_grades(stage.grade.name for stage in state.stages)))


def limit_legend(state: CoordinatorState) -> str:
    """Returns what the grades of the constraints mean, in one line."""
    return "; ".join(_grades(item.grade.name for item in state.ledger.constraints))


def request_table(receipt: Receipt, state: CoordinatorState) -> Table:
    """Returns one row for each stage of a request: time, bytes, memory against budget.

    Of a request that still runs, the bytes are those that crossed its edges so far.
    """
    stages = {stage.stage_id: stage for stage in state.stages}
    rows = []
    for item in receipt.stages:
        stage = stages.get(item.stage_id)
        came = sum(hop.size_bytes for hop in receipt.hops if _is_of(hop.target, item.stage_id))
        left = max(
            (h.size_bytes for h in receipt.hops if _is_of(h.source, item.stage_id)), default=0
        )
        rows.append(
            (
                item.stage_id,
                item.worker_id,
                item.device,
                seconds(item.busy_seconds),
                seconds(item.first_output_seconds),
                format_size(item.input_bytes or came),
                format_size(item.output_bytes or left),
                against(stage.measured_bytes, stage.reserved_bytes) if stage is not None else "-",
            )
        )
    return Table(
        ("stage", "worker", "device", "busy", "first out", "in", "out", "memory / budget"),
        tuple(rows),
    )


def worker_memory(worker: WorkerState) -> str:
    """Returns what a worker was measured to take, beside what is reserved for it."""
    return against(worker.measured_bytes, worker.reserved_bytes)


def against(measured_bytes: int, reserved_bytes: int) -> str:
    """Returns a measurement beside its budget."""
    measured = format_size(measured_bytes) if measured_bytes else "-"
    over = " (over)" if measured_bytes > reserved_bytes > 0 else ""
    return f"{measured} / {format_size(reserved_bytes)}{over}"


def seconds(value: float | None) -> str:
    """Returns a time for people; a dash when there is none."""
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms"


def _is_of(port: str, stage: str) -> bool:
    return port.startswith(f"{stage}.")


def doing(stage: StageState) -> str:
    """Returns the phase of a stage, or how far its start has come."""
    if stage.phase is not Phase.STARTING or not stage.evidence:
        return stage.phase.name.lower()
    if stage.load_seconds is not None:
        return "proven"
    # What an executor calls ready has still to run its example.
    return "loaded" if stage.evidence == "ready" else stage.evidence


def _grades(letters: Iterable[str]) -> list[str]:
    shown = dict.fromkeys(letters)
    return [f"{grade.name} = {grade.value}" for grade in Grade if grade.name in shown]
