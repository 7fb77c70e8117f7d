"""Names that one entry of a plan uses for another, and whether the other is there."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from coordinator.facts.ids import ArtifactId, PipelineId, StageId, WorkerId
from coordinator.plan.problems import Problem, suggest
from coordinator.plan.schema import ArtifactSpec, PipelineSpec, Plan, StageSpec, WorkerSpec


@dataclass(frozen=True, slots=True)
class PlanParts:
    """The entries of a plan that may have broken ones among them.

    A broken entry or section is None, so that what refers to it is not listed as well.
    """

    artifacts: Mapping[ArtifactId, ArtifactSpec | None] | None
    workers: Mapping[WorkerId, WorkerSpec | None] | None
    stages: Mapping[StageId, StageSpec | None] | None
    pipelines: Mapping[PipelineId, PipelineSpec | None] | None

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Returns the entries of a plan without a broken one."""
        return cls(plan.artifacts, plan.workers, plan.stages, plan.pipelines)


def check_references(parts: PlanParts) -> list[Problem]:
    """Lists stages that name an artifact or worker that the plan does not describe."""
    return [
        problem
        for name, stage in (parts.stages or {}).items()
        if stage is not None
        for problem in (
            *_check_artifact(name, stage, parts.artifacts),
            *_check_workers(name, stage, parts.workers),
        )
    ]


def _check_artifact(
    name: StageId, stage: StageSpec, known: Mapping[ArtifactId, ArtifactSpec | None] | None
) -> Iterator[Problem]:
    if known is None or stage.artifact is None:
        return
    if isinstance(stage.artifact, str):
        if stage.artifact not in known:
            yield _unknown(("stages", name, "artifact"), "artifact", stage.artifact, known)
        return
    for device, artifact in stage.artifact.items():
        if artifact not in known:
            yield _unknown(("stages", name, "artifact", device), "artifact", artifact, known)
    required = stage.device.require
    if required is not None and not {required, required.partition(":")[0]} & set(stage.artifact):
        yield Problem(
            ("stages", name, "artifact"),
            f"has none for the required device {required}",
            f"add an artifact for {required.partition(':')[0]}, or require another device",
            is_about_key=True,
        )


def _check_workers(
    name: StageId, stage: StageSpec, known: Mapping[WorkerId, WorkerSpec | None] | None
) -> Iterator[Problem]:
    if known is None:
        return
    for number, worker in enumerate(stage.workers):
        if worker not in known:
            yield _unknown(("stages", name, "workers", number), "worker", worker, known)


def _unknown(path: tuple[str | int, ...], what: str, word: str, known: Iterable[str]) -> Problem:
    what = f'names the {what} "{word}", which the plan does not describe'
    return Problem(path, what, suggest(word, known))
