"""What a plan may ask for that this version cannot do yet: refused, never ignored. Pure."""

from collections.abc import Iterator, Mapping

from coordinator.facts.ids import WorkerId
from coordinator.plan.schema import Plan
from stagewire.errors import PlanInvalidError


def check_supported(plan: Plan) -> None:
    """Checks that nothing in a plan would be ignored.

    Raises:
        PlanInvalidError: something would be; every field is named.
    """
    problems = list(_unsupported(plan))
    if problems:
        lines = (f"{field}: {why}; remove it" for field, why in problems)
        raise PlanInvalidError("\n".join(lines), problem_count=len(problems))


def unreachable_workers(plan: Plan) -> Mapping[WorkerId, str]:
    """Returns the workers that cannot be started by this version, and why."""
    return {
        WorkerId(
            name
        ): "a Windows interpreter cannot be reached by this version; name one for Linux"
        for name, worker in plan.workers.items()
        if worker.interpreter is not None and worker.interpreter.linux is None
    }


def _unsupported(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.transport.arena is not None:
        yield "transport.arena", "this version moves tensors inside messages alone"
    for artifact_id, artifact in plan.artifacts.items():
        if artifact.examples is not None:
            field = f"artifacts.{artifact_id}.examples"
            yield field, "stages are proved by examples of their executors"
    for name, stage in plan.stages.items():
        if stage.device.min_share_on_target is not None:
            yield f"stages.{name}.device.min_share_on_target", "shares are not measured yet"
        if stage.keep == "evictable":
            yield f"stages.{name}.keep", "no stage is unloaded to make room yet"
