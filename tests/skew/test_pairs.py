"""Old and new beside each other: what passes between them arrives bit for bit."""

import pytest

from stagewire.descriptor import DataType

from .conftest import OTHER_END, plan_of

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def pair(ends):
    """A coordinator that is up, with a worker of one end and another of the other."""
    workers = {
        "a": ends.worker_python(ends.worker),
        "b": ends.worker_python(OTHER_END[ends.worker]),
    }
    with ends.up(plan_of(workers)):
        yield ends


@pytest.fixture(scope="module", params=["of the worker's side", "of the coordinator's side"])
def seen(request, pair):
    """What a client of either side saw."""
    is_workers = request.param == "of the worker's side"
    return pair.exchange(pair.worker_python(pair.worker) if is_workers else pair.coordinator_python)


def test_one_item_of_every_element_type_comes_back_as_it_was(seen):
    assert seen["types"] == {item.spelling: True for item in DataType}
    assert seen["single"] == {"utf8": True, "bytes": True}


def test_a_tensor_of_many_chunks_crosses_both_workers_and_comes_back_as_it_was(seen):
    assert seen["large"]["is_same"]
    assert seen["large"]["hops"] == [["chunked", 8 << 20]] * 3
    assert seen["by_async_client"]


def test_its_status_can_be_read(pair):
    result = pair.ask("status")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("ready") >= len(("types", "single", "there", "back", "a", "b"))
