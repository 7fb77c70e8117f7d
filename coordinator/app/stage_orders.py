"""What is asked of a worker for each of its stages, and how its answers are judged. Pure."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from coordinator.app.design import Design
from coordinator.app.hosting import LoadedStage
from coordinator.artifacts.specification import Artifact
from coordinator.facts.ids import StageId, WorkerId
from coordinator.facts.proof import Grade, Verdict
from coordinator.pipeline.topology import to_port
from stagewire import ports
from stagewire.errors import CapabilityMissingError, ProofFailedError
from stagewire.v1 import capability_pb2, gateway_pb2
from stagewire.wiretime import to_duration, to_seconds


def check_rows(
    design: Design, worker: WorkerId, said: Iterable[capability_pb2.CapabilityRow]
) -> None:
    """Compares what a worker says with what the placement took it to execute.

    Raises:
        CapabilityMissingError: it lacks something that one of its stages needs.
    """
    rows = {row.executor: row for row in said}
    for name in design.stages_on(worker):
        stage = design.plan.stages[name]
        choice = design.placement.stages[name].artifact
        row = rows.get(stage.executor)
        if row is None or row.unavailable_reason:
            reason = row.unavailable_reason if row is not None else "it has no such executor"
            raise CapabilityMissingError(
                f"worker {worker!r} cannot run {name!r} by {stage.executor}: {reason}"
            )
        if stage.function and stage.function not in row.functions:
            raise CapabilityMissingError(
                f"worker {worker!r} has no function {stage.function!r};"
                f" it has {', '.join(row.functions)}"
            )
        if choice is not None and choice.artifact_format not in row.formats:
            raise CapabilityMissingError(
                f"worker {worker!r} does not execute {choice.artifact_format} by"
                f" {stage.executor}; it executes {', '.join(row.formats)}"
            )


def load_order(
    design: Design, name: StageId, checked: "tuple[Artifact, Path] | None"
) -> gateway_pb2.LoadStage:
    """Returns the order to load a stage, whose artifact lies checked in a folder."""
    stage = design.plan.stages[name]
    placed = design.placement.stages[name]
    order = gateway_pb2.LoadStage(
        stage_id=name,
        executor=stage.executor,
        device=placed.device,
        function=stage.function or "",
        options_json=json.dumps(_plain(stage.options)),
        inputs=[
            ports.to_message(to_port(port, spec.port_type)) for port, spec in stage.inputs.items()
        ],
        outputs=[
            ports.to_message(to_port(port, spec.port_type)) for port, spec in stage.outputs.items()
        ],
        thread_count=stage.threads,
        resident_bytes=stage.memory.resident,
        load_peak_bytes=stage.memory.load_peak,
        concurrency=stage.limits.concurrency,
        hang_timeout=to_duration(stage.limits.hang_timeout),
        per_request_bytes=stage.memory.per_request,
        cores=design.cores[name].cores,
    )
    if stage.played_port is not None:
        order.realtime.port, order.realtime.per_second = stage.played_port
    if checked is not None and placed.artifact is not None:
        _, folder = checked
        order.artifact_format = placed.artifact.artifact_format
        order.artifact_root = str(folder)
        for file in design.plan.artifacts[placed.artifact.artifact_id].files:
            order.files.add(path=file.path, sha256=file.sha256, size_bytes=file.size or 0)
    return order


def judged(
    design: Design,
    name: StageId,
    loaded: gateway_pb2.StageLoaded,
    proved: gateway_pb2.StageProved,
) -> LoadedStage:
    """Returns what a proof says of a stage.

    Raises:
        ProofFailedError: the plan asks for more than it says.
    """
    verdict = Verdict[capability_pb2.Verdict.Name(proved.verdict).removeprefix("VERDICT_")]
    grade = Grade[capability_pb2.Grade.Name(proved.grade).removeprefix("GRADE_")]
    wanted = design.plan.stages[name].device.min_evidence
    if verdict not in (Verdict.FULL, Verdict.PARTIAL):
        raise ProofFailedError(
            f"stage {name!r} did not run as it must: {verdict.value}; {proved.evidence}",
            stage=name,
            verdict=verdict.value,
        )
    if wanted is not None and grade < wanted:
        raise ProofFailedError(
            f"stage {name!r} is proved with grade {grade.name}, the plan wants {wanted.name};"
            " lower device.min_evidence or choose a device that earns it",
            stage=name,
        )
    return LoadedStage(
        loaded.measured_bytes,
        to_seconds(loaded.duration),
        verdict,
        grade,
        proved.evidence,
        tuple(loaded.thread_settings),
        (loaded.anonymous_before_bytes, loaded.anonymous_after_bytes)
        if loaded.HasField("anonymous_after_bytes")
        else None,
    )


def _plain(options: Mapping[str, object]) -> dict[str, object]:
    """Returns options as JSON can hold them: the plan's own mappings are read-only views."""
    return {key: _plain_value(value) for key, value in options.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, Mapping):
        return _plain(value)
    if isinstance(value, (list, tuple)):
        return [_plain_value(item) for item in value]
    return value
