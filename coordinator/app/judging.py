"""What came out of an example, held against what its plan expects. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from coordinator.plan.schema import ExampleSpec, ExpectationSpec
from stagewire.tensor import Value

_SHOWN_CHARACTERS: Final = 2000


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule of an expectation, and what was found."""

    output: str
    rule: str
    expected: str | float
    found: str | float
    is_met: bool

    def __str__(self) -> str:
        return f"{self.output}: {self.rule} {self.expected}, found {self.found}"


def judge(example: ExampleSpec, outputs: Mapping[str, Sequence[Value]]) -> tuple[Finding, ...]:
    """Holds the items of each output against every rule for it."""
    return tuple(
        finding
        for name, expectation in example.expect.items()
        for finding in _findings(name, expectation, outputs.get(name, ()))
    )


def joined_text(items: Sequence[Value]) -> str | None:
    """Returns the items of an output of texts as one; None where one is no text."""
    texts = [item for item in items if isinstance(item, str)]
    return "".join(texts) if len(texts) == len(items) else None


def element_count(items: Sequence[Value]) -> int:
    """Returns how many elements all tensors of an output have together."""
    return sum(int(np.size(item)) for item in items if not isinstance(item, (str, bytes)))


def _findings(name: str, expectation: ExpectationSpec, items: Sequence[Value]) -> Iterator[Finding]:
    counts = (
        ("min_items", expectation.min_items, len(items)),
        ("max_items", expectation.max_items, len(items)),
        ("min_elements", expectation.min_elements, element_count(items)),
    )
    for rule, bound, count in counts:
        if bound is not None:
            is_met = count <= bound if rule.startswith("max") else count >= bound
            yield Finding(name, rule, bound, count, is_met)
    yield from _text_findings(name, expectation, items)
    yield from _number_findings(name, expectation, items)


def _text_findings(
    name: str, expectation: ExpectationSpec, items: Sequence[Value]
) -> Iterator[Finding]:
    text = joined_text(items)
    found = "no text" if text is None else text.strip()[:_SHOWN_CHARACTERS]
    for part in expectation.contains:
        is_met = text is not None and part.casefold() in text.casefold()
        yield Finding(name, "contains", part, found, is_met)
    if expectation.equals is not None:
        wanted = expectation.equals.strip()
        yield Finding(name, "equals", wanted, found, text is not None and text.strip() == wanted)


def _number_findings(
    name: str, expectation: ExpectationSpec, items: Sequence[Value]
) -> Iterator[Finding]:
    if expectation.min is None and expectation.max is None:
        return
    numbers = [
        np.asarray(item, np.float64).ravel()
        for item in items
        if isinstance(item, np.ndarray | np.generic) and item.dtype.kind in "biuf"
    ]
    together = np.concatenate(numbers) if numbers else np.empty(0)
    is_whole = bool(together.size) and len(numbers) == len(items)
    for rule, bound in (("min", expectation.min), ("max", expectation.max)):
        if bound is None:
            continue
        if not is_whole:
            yield Finding(name, rule, bound, "no numbers", is_met=False)
            continue
        # What is no number is neither above nor below.
        worst = float(together.min() if rule == "min" else together.max())
        yield Finding(name, rule, bound, worst, worst >= bound if rule == "min" else worst <= bound)
