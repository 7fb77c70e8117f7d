"""How placement says no: every stage that has no place at once, each with every candidate."""

from collections.abc import Mapping, Sequence

from coordinator.placement.requirement import LostCandidate, StageRequirement
from stagewire.errors import PlacementRefusedError


def refused(
    stages: Sequence[StageRequirement], lost: Mapping[str, Sequence[LostCandidate]]
) -> PlacementRefusedError:
    """Returns the refusal of the stages that are keys of `lost`."""
    without = [stage for stage in stages if stage.stage_id in lost]
    lines = [f"{len(without)} of {len(stages)} stages cannot be placed"]
    for stage in without:
        lines.append(f"  {stage.stage_id} ({_needs(stage)})")
        lines.extend(f"    {candidate}" for candidate in lost[stage.stage_id])
    # A stage may have any name; the prefix keeps it apart from the names of arguments.
    facts = {
        f"stage:{stage.stage_id}": "; ".join(map(str, lost[stage.stage_id])) for stage in without
    }
    return PlacementRefusedError("\n".join(lines), **facts)  # type: ignore[arg-type]  # no fact is named retry_delay_ms


def _needs(stage: StageRequirement) -> str:
    needs = [f"executor {stage.executor}"]
    if stage.function:
        needs.append(f"function {stage.function}")
    if stage.rule.require:
        needs.append(f"requires {stage.rule.require}")
    if stage.rule.prefer:
        needs.append(f"prefers {', then '.join(stage.rule.prefer)}")
    if stage.rule.forbid:
        needs.append(f"forbids {', '.join(stage.rule.forbid)}")
    needs.append(f"workers {', '.join(stage.workers)}" if stage.workers else "no workers")
    return ", ".join(needs)
