"""What every part of a plan has in common."""

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """Base of every part of a plan: unknown fields are refused, nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
