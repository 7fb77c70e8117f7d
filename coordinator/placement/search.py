"""The search: every stage gets the best candidate that meets its needs, or the plan is refused.

Candidates are ranked by the order of `device.prefer`, then by that of `workers`, then by that of
the capability rows.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coordinator.devices.rows import CapabilityRow, device_kind
from coordinator.facts.ids import DeviceId, StageId, WorkerId
from coordinator.placement.refusal import refused
from coordinator.placement.requirement import (
    ArtifactChoice,
    DeviceRule,
    LostCandidate,
    Placement,
    StagePlacement,
    StageRequirement,
    WorkerOffer,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    worker_id: WorkerId
    device: DeviceId
    rank: int
    artifact: ArtifactChoice | None
    why_not: str
    """Empty when the stage can run there."""


def place(
    stages: Sequence[StageRequirement],
    workers: Iterable[WorkerOffer],
    rows: Iterable[CapabilityRow],
) -> Placement:
    """Decides where every stage runs.

    Raises:
        PlacementRefusedError: some stages have no place; each candidate is listed with why not.
    """
    offers = {offer.worker_id: offer for offer in workers}
    rows_by_worker: dict[WorkerId, list[CapabilityRow]] = {}
    for row in rows:
        rows_by_worker.setdefault(row.worker_id, []).append(row)
    placed: dict[StageId, StagePlacement] = {}
    lost: dict[str, Sequence[LostCandidate]] = {}
    for stage in stages:
        candidates, absent = _candidates(stage, offers, rows_by_worker)
        able = [candidate for candidate in candidates if not candidate.why_not]
        if able:
            placed[stage.stage_id] = _chosen(stage, able[0], candidates, absent)
        else:
            others = [LostCandidate(c.worker_id, c.device, c.why_not) for c in candidates]
            lost[stage.stage_id] = (*absent, *others)
    if lost:
        raise refused(stages, lost)
    return Placement(placed)


def _candidates(
    stage: StageRequirement,
    offers: Mapping[WorkerId, WorkerOffer],
    rows_by_worker: Mapping[WorkerId, Sequence[CapabilityRow]],
) -> tuple[list[_Candidate], list[LostCandidate]]:
    """Returns one candidate a device and worker, best first, and what offers no device."""
    candidates: list[_Candidate] = []
    absent: list[LostCandidate] = []
    for worker_id in stage.workers:
        offer = offers.get(worker_id)
        rows = rows_by_worker.get(worker_id, ())
        if offer is None:
            absent.append(LostCandidate(worker_id, None, "the plan has no such worker"))
        elif offer.unavailable_reason:
            absent.append(LostCandidate(worker_id, None, offer.unavailable_reason))
        elif not rows:
            absent.append(LostCandidate(worker_id, None, "it says nothing of what it can execute"))
        else:
            # One candidate a device, whatever the number of executors that use it.
            for device in dict.fromkeys(row.device for row in rows):
                own = [row for row in rows if row.device == device]
                candidates.append(_judge(stage, worker_id, device, own))
    candidates.sort(key=lambda candidate: candidate.rank)
    wanted = (stage.rule.require,) if stage.rule.require else stage.rule.prefer
    absent.extend(
        LostCandidate(None, DeviceId(name), "no worker of this stage offers it")
        for name in wanted
        if not any(_matches(candidate.device, name) for candidate in candidates)
    )
    return candidates, absent


def _judge(
    stage: StageRequirement, worker_id: WorkerId, device: DeviceId, rows: Sequence[CapabilityRow]
) -> _Candidate:
    rank = _rank(stage.rule, device)
    artifact = _artifact(stage, device)
    why_not = _why_not_device(stage.rule, device) or _why_not_executor(stage, artifact, rows)
    return _Candidate(worker_id, device, rank, artifact, why_not)


def _rank(rule: DeviceRule, device: DeviceId) -> int:
    ranks = (rank for rank, name in enumerate(rule.prefer) if _matches(device, name))
    return next(ranks, len(rule.prefer))


def _why_not_device(rule: DeviceRule, device: DeviceId) -> str:
    if any(_matches(device, name) for name in rule.forbid):
        return "device.forbid names it"
    if rule.require and not _matches(device, rule.require):
        return f"the stage requires {rule.require}"
    if rule.prefer and not rule.require and _rank(rule, device) == len(rule.prefer):
        return "device.prefer does not name it"
    return ""


def _why_not_executor(
    stage: StageRequirement, artifact: ArtifactChoice | None, rows: Sequence[CapabilityRow]
) -> str:
    row = next((row for row in rows if row.executor == stage.executor), None)
    if row is None:
        return f"it has no executor {stage.executor}, only {_listed(row.executor for row in rows)}"
    if row.unavailable_reason:
        return f"executor {stage.executor}: {row.unavailable_reason}"
    if stage.function and stage.function not in row.functions:
        return f"it has no function {stage.function}, only {_listed(row.functions)}"
    if artifact is not None and artifact.artifact_format not in row.formats:
        return (
            f"executor {stage.executor} does not execute {artifact.artifact_format}"
            f" ({artifact.artifact_id}), only {_listed(row.formats)}"
        )
    if artifact is None and stage.artifacts:
        return f"no artifact for it; there are some for {_listed(stage.artifacts)}"
    return ""


def _artifact(stage: StageRequirement, device: DeviceId) -> ArtifactChoice | None:
    for key in (device, device_kind(device), ""):
        if key in stage.artifacts:
            return stage.artifacts[key]
    return None


def _chosen(
    stage: StageRequirement,
    winner: _Candidate,
    candidates: Sequence[_Candidate],
    absent: Sequence[LostCandidate],
) -> StagePlacement:
    others = tuple(
        LostCandidate(
            candidate.worker_id,
            candidate.device,
            candidate.why_not or f"{winner.device} on worker {winner.worker_id} comes first",
        )
        for candidate in candidates
        if candidate is not winner
    )
    if stage.rule.require:
        reason = f"the stage requires {stage.rule.require}"
    elif stage.rule.prefer:
        name = stage.rule.prefer[winner.rank]
        reason = f"preference {winner.rank + 1} of {len(stage.rule.prefer)}, {name}"
    elif len(candidates) == 1:
        reason = "the only device of its workers"
    else:
        reason = "first in the order of its workers"
    return StagePlacement(
        stage.stage_id,
        winner.worker_id,
        winner.device,
        winner.artifact,
        reason,
        is_fallback=bool(stage.rule.prefer) and not stage.rule.require and winner.rank > 0,
        lost=(*absent, *others),
    )


def _matches(device: DeviceId, name: str) -> bool:
    return name in (device, device_kind(device))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names)) or "none"
