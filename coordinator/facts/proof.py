"""How claims were obtained and how proofs came out."""

import enum
import functools


@functools.total_ordering
class Grade(enum.Enum):
    """How a claim was obtained, weakest first; comparable."""

    E = "estimated"
    D = "read off"
    B = "the backend ran it"
    C = "checked on the device"
    P = "a profiled whole path"

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Grade):
            return NotImplemented
        order = list(Grade)
        return order.index(self) < order.index(other)


class Verdict(enum.StrEnum):
    """Outcome of a proof."""

    ABSENT = "absent"
    INIT_FAILED = "init_failed"
    RUN_FAILED = "run_failed"
    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"
    WRONG_NUMBERS = "wrong_numbers"
    UNMEASURED = "unmeasured"
