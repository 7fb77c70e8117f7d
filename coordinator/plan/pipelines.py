"""Names of pipelines that a person or a client writes."""

import difflib
from collections.abc import Iterable

from stagewire.errors import PipelineUnknownError


def require_pipelines(names: Iterable[str], known: Iterable[str]) -> None:
    """Checks that a plan has every pipeline that was named.

    Raises:
        PipelineUnknownError: it has not; the message lists those that it has.
    """
    there = list(known)
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, there, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise PipelineUnknownError(
                f"the plan has no pipeline {name!r}; it has {', '.join(there)}{hint}"
            )
