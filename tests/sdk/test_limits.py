"""Every limit: what is within it passes, what is beyond is refused at once and for no memory."""

import ast
from pathlib import Path

import pytest

from stagewire import limits
from stagewire.chunks import whole_item
from stagewire.descriptor import DataType, TensorDescriptor
from stagewire.items import Assembler
from stagewire.limits import TENSOR_BYTES
from testkit import limit_cases, limit_cases_of_accounts, limit_cases_of_files
from testkit.limit_table import (
    MAY_TAKE_SECONDS,
    MOST_GROWTH_BYTES,
    Bounded,
    Refused,
    measure,
    value_of,
)

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
CASES = (*limit_cases.CASES, *limit_cases_of_accounts.CASES, *limit_cases_of_files.CASES)
REFUSED = [case for case in CASES if isinstance(case, Refused)]
BOUNDED = [case for case in CASES if isinstance(case, Bounded)]
ELSEWHERE = {
    "METADATA_BYTES": "tests/sdk/test_channel.py::test_metadata_over_its_limit_end_the_call",
    "CONCURRENT_CALLS": "tests/sdk/test_channel.py"
    "::test_no_more_calls_run_at_once_than_their_limit",
    "CHUNK_BYTES": "tests/coordinator/serve/test_requests.py"
    "::test_a_chunk_over_its_limit_is_refused_and_harms_no_worker",
    "REQUESTS": "tests/coordinator/pipeline/test_engine.py"
    "::test_one_request_more_than_may_run_is_refused",
    "ATTEMPTS": "tests/sdk/client/test_retrying.py::test_there_are_so_many_attempts_and_no_more",
}
"""Limits that take more than one module to try, and the tests that do."""
NOTHING_TO_REFUSE = {"TOMBSTONE_SECONDS"}
"""Times after which something is forgotten."""


def test_every_limit_has_a_case():
    names = {name for name in vars(limits) if name.isupper()}
    assert names == {case.limit for case in CASES} | ELSEWHERE.keys() | NOTHING_TO_REFUSE


@pytest.mark.parametrize("place", ELSEWHERE.values())
def test_the_tests_elsewhere_exist(place):
    file, _, name = place.partition("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_what_has_the_size_of_its_limit_is_not_refused_for_it(case, tmp_path):
    act = case.prepare(value_of(case.limit), tmp_path)
    cost = measure(act)
    assert not case.is_refusal(cost.error), cost.error


@pytest.mark.parametrize(
    ("case", "size"), [(case, size) for case in REFUSED for size in case.sizes], ids=str
)
def test_what_is_beyond_a_limit_is_refused_at_once_and_takes_no_memory(
    case, size, tmp_path, record_property
):
    costs = []
    for number in range(3):
        # Anew each time: what refuses may not be what it was.
        folder = tmp_path / str(number)
        folder.mkdir()
        costs.append(measure(case.prepare(size, folder)))
    quickest = min(costs, key=lambda cost: cost.seconds)
    record_property(f"{case} at {size}", str(quickest))
    print(f"{case} at {size}: {quickest}")
    assert all(case.is_refusal(cost.error) for cost in costs), costs
    assert costs[0].growth_bytes <= MOST_GROWTH_BYTES
    assert quickest.seconds <= MAY_TAKE_SECONDS


@pytest.mark.parametrize(
    ("case", "size"), [(case, size) for case in BOUNDED for size in case.sizes], ids=str
)
def test_what_takes_any_size_keeps_no_more_than_its_limit(case, size, tmp_path):
    kept = case.prepare(size, tmp_path)()
    assert 0 < kept <= value_of(case.limit) + case.slack


def test_a_claim_of_the_largest_tensor_takes_no_memory_before_its_bytes_are_there():
    descriptor = TensorDescriptor(DataType.UINT8, (TENSOR_BYTES,), TENSOR_BYTES)
    item = whole_item("x", 0, descriptor, memoryview(b"a"), 0)
    assembler = Assembler("x")
    cost = measure(lambda: assembler.accept(item, memoryview(b"a")))
    assert (cost.error, cost.result) == (None, None)
    assert cost.growth_bytes <= MOST_GROWTH_BYTES
