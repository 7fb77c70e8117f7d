"""A stage in a child before the suite of every executor."""

import numpy as np
import pytest

from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.conformance import CHECKS, Trial
from stagewire.worker.executor import StageOrder
from stagewire.worker.fake import FakeExecutor

pytestmark = pytest.mark.integration

FLOATS = (Dimension("n", 8),)
ORDER = StageOrder(
    "one",
    "fake",
    "cpu",
    options={"in_child": True},
    inputs=(Port("x", DataType.FLOAT32, FLOATS, True),),
    outputs=(Port("y", DataType.FLOAT32, FLOATS, True),),
)
ITEM = np.arange(4, dtype=np.float32)
NOT_OF_THE_FAKE = "check_an_unknown_option_is_refused"
"""It takes what is meant for the executor whose place it has."""


@pytest.fixture(scope="module")
def trial():
    with Trial(FakeExecutor, ORDER, {"x": [ITEM, ITEM * 2]}) as opened:
        yield opened


@pytest.mark.parametrize(
    "check",
    [check for check in CHECKS if check.__name__ != NOT_OF_THE_FAKE],
    ids=lambda check: check.__name__,
)
def test_a_stage_in_a_child_conforms(trial, check):
    check(trial)
