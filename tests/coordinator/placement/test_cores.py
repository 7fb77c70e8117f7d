"""Which cores stages keep to: disjoint where there are enough, and why not elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.cores import HostCores
from coordinator.placement.cores import CoreWish, assign_cores
from stagewire.errors import PlacementRefusedError

pytestmark = pytest.mark.unit


def machine(physical: int, threads: int = 1, quota: float | None = None) -> HostCores:
    """Hardware threads numbered as Linux does: first those of every core, then their siblings."""
    groups = tuple(
        tuple(core + physical * sibling for sibling in range(threads)) for core in range(physical)
    )
    return HostCores(groups, quota)


def wish(stage, threads=1, choice="auto", *, worker="w", is_on_cpu=True) -> CoreWish:
    return CoreWish(stage, worker, threads, choice, is_on_cpu)


def spelled(wishes, host):
    return {stage: str(found) for stage, found in assign_cores(wishes, host).items()}


def test_each_stage_gets_cores_of_its_own_where_there_are_enough():
    found = spelled([wish("a"), wish("b", 2), wish("c")], machine(4))

    assert found == {"a": "2", "b": "0-1", "c": "3"}


def test_too_few_cores_are_shared_by_all_and_the_reason_says_so():
    found = assign_cores([wish(name) for name in "abcdef"], machine(2))

    assert {str(stage) for stage in found.values()} == {"any"}
    assert {stage.why for stage in found.values()} == {
        "shared: 6 stages want 6 of their own and 2 can run at once"
    }


def test_a_quota_counts_like_a_lack_of_cores():
    found = assign_cores([wish("a"), wish("b")], machine(8, quota=1.5))

    assert {str(stage) for stage in found.values()} == {"any"}
    assert "1 can run at once" in found["a"].why


def test_whole_physical_cores_go_to_one_stage_while_there_are_enough():
    assert spelled([wish("a"), wish("b", 2)], machine(4, threads=2)) == {"a": "2,6", "b": "0-1,4-5"}


def test_siblings_stay_together_when_hardware_threads_are_given_out():
    found = spelled([wish("a"), wish("b", 2), wish("c")], machine(2, threads=2))

    assert found == {"a": "1", "b": "0,2", "c": "3"}


def test_stages_of_one_worker_are_neighbours():
    wishes = [wish("a", worker="x"), wish("b", worker="y"), wish("c", worker="x")]

    assert spelled(wishes, machine(3)) == {"a": "0", "c": "1", "b": "2"}


def test_named_cores_are_left_out_for_others():
    found = spelled([wish("a"), wish("b", choice=(0, 1)), wish("c")], machine(4))

    assert found == {"a": "2", "b": "0-1", "c": "3"}


def test_stages_that_share_get_what_the_others_leave():
    wishes = [wish("a"), wish("b", choice="shared"), wish("c", choice="shared")]

    assert spelled(wishes, machine(4)) == {"a": "0", "b": "1-3", "c": "1-3"}


def test_a_core_is_left_for_those_that_share():
    found = assign_cores([wish("a"), wish("b"), wish("c", choice="shared")], machine(2))

    assert {str(stage) for stage in found.values()} == {"any"}
    assert "one is for those that share" in found["a"].why


def test_those_that_share_go_anywhere_when_every_core_is_named():
    found = spelled([wish("a", choice=(0, 1)), wish("b")], machine(2))

    assert found == {"a": "0-1", "b": "any"}


def test_a_stage_on_another_device_wants_no_core_of_its_own():
    found = assign_cores([wish("a"), wish("b", 8, is_on_cpu=False)], machine(2))

    assert {name: str(stage) for name, stage in found.items()} == {"a": "0", "b": "1"}
    assert found["b"].why == "it computes on another device"


def test_a_core_that_cannot_be_used_is_refused_by_name():
    with pytest.raises(PlacementRefusedError) as refusal:
        assign_cores([wish("a", choice=(1, 7)), wish("b")], machine(2))

    assert "a: cores 7 cannot be used; write some of 0-1" in refusal.value.message
    assert refusal.value.facts["stage:a"] == "7"


def test_nothing_is_decided_where_the_cores_are_not_known():
    found = assign_cores([wish("a"), wish("b", choice=(9,))], None)

    assert [str(stage) for stage in found.values()] == ["any", "9"]
    assert "not known" in found["a"].why


@given(
    st.lists(
        st.tuples(
            st.integers(1, 4),
            st.sampled_from(["auto", "auto", "shared", (0,), (0, 1)]),
            st.sampled_from("xyz"),
            st.booleans(),
        ),
        min_size=1,
        max_size=8,
    ),
    st.integers(2, 12),
    st.integers(1, 2),
    st.one_of(st.none(), st.floats(0.5, 16)),
)
def test_sets_are_usable_large_enough_and_disjoint_unless_the_plan_shares(
    stages, physical, siblings, quota
):
    host = machine(physical, siblings, quota)
    wishes = [
        wish(f"s{number}", threads, choice, worker=worker, is_on_cpu=is_on_cpu)
        for number, (threads, choice, worker, is_on_cpu) in enumerate(stages)
    ]

    found = assign_cores(wishes, host)

    assert list(found) == [item.stage_id for item in wishes]
    own = [item for item in wishes if "of its own" in found[item.stage_id].why]
    automatic = [item for item in wishes if item.choice == "auto" and item.is_on_cpu]
    # All of them or none.
    assert own in ([], automatic)
    taken = set()
    for item in own:
        cores = set(found[item.stage_id].cores)
        assert len(cores) >= item.thread_count
        assert not cores & taken
        taken |= cores
    for item in wishes:
        cores = set(found[item.stage_id].cores)
        assert cores <= host.usable
        if item.choice == "shared" and own:
            assert cores, "a core is left"
            assert not cores & taken
    assert assign_cores(wishes, host) == found
