"""Examples of a pipeline as a plan's author writes them: what is sent, and what must come out."""

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, model_validator

from coordinator.plan.fields import Line, RelativePath, ValueName
from coordinator.plan.spec import Spec

_ITEMS = 1 << 20
_ELEMENTS = 1 << 40
_EXAMPLE_CHARACTERS = 65_536

ExampleText = Annotated[str, Field(max_length=_EXAMPLE_CHARACTERS)]


class ExampleInputSpec(Spec):
    """What one input of an example gets."""

    file: RelativePath | None = None
    """A recording, image, text or `.npy` file, below the folder of the plan or the checkout."""
    text: ExampleText | None = None
    """The words themselves."""
    number: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """A single number of the port's type."""

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if sum(item is not None for item in (self.file, self.text, self.number)) != 1:
            raise ValueError("needs file, text or number; write exactly one of them")
        return self


class ExpectationSpec(Spec):
    """What must hold of one output of an example. Texts of several items are joined first."""

    min_items: Annotated[int, Field(ge=0, le=_ITEMS)] | None = None
    """Fewest items."""
    max_items: Annotated[int, Field(ge=0, le=_ITEMS)] | None = None
    """Most items; 0 for an output that must stay empty."""
    contains: Annotated[tuple[Line, ...], Field(max_length=100)] = ()
    """Texts that must all be in it, in capitals or not."""
    equals: ExampleText | None = None
    """The text that it must be, but for spaces around it."""
    min_elements: Annotated[int, Field(ge=0, le=_ELEMENTS)] | None = None
    """Fewest elements of all its tensors together, such as samples of a recording."""
    min: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Bound that no number of it is below."""
    max: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Bound that no number of it is above."""

    @model_validator(mode="after")
    def _can_hold(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("asks for nothing; write a rule such as min_items: 1")
        for low, high in (("min_items", "max_items"), ("min", "max")):
            least, most = getattr(self, low), getattr(self, high)
            if least is not None and most is not None and least > most:
                raise ValueError(f"has {low} above {high}; lower one of them")
        return self


class ExampleSpec(Spec):
    """One request whose answer is known well enough to be judged."""

    inputs: Mapping[ValueName, ExampleInputSpec] = {}
    """What each input gets; a recording fills the input `rate` as well."""
    expect: Mapping[ValueName, ExpectationSpec] = {}
    """What must come out; without it the request must only end well."""
