"""Names that examples use for inputs and outputs of their pipeline, and whether those exist."""

from collections.abc import Iterable, Iterator

from coordinator.plan.positions import FieldPath
from coordinator.plan.problems import Problem, suggest
from coordinator.plan.references import PlanParts


def check_examples(parts: PlanParts) -> list[Problem]:
    """Lists what examples send to no input, and expect of no output."""
    return [
        problem
        for name, pipeline in (parts.pipelines or {}).items()
        if pipeline is not None
        for number, example in enumerate(pipeline.examples)
        for part, used, known in (
            ("inputs", example.inputs, pipeline.inputs),
            ("expect", example.expect, pipeline.outputs),
        )
        for problem in _unknown(("pipelines", name, "examples", number, part), used, known)
    ]


def _unknown(path: FieldPath, used: Iterable[str], known: Iterable[str]) -> Iterator[Problem]:
    what = "is no input of the pipeline" if path[-1] == "inputs" else "is no output of the pipeline"
    for name in used:
        if name not in known:
            yield Problem((*path, name), what, suggest(name, known), is_about_key=True)
