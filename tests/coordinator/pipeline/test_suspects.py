"""Who is to blame for the death of a worker: the request that is there at the second one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.facts.ids import Incarnation, RequestId
from coordinator.pipeline.suspects import Suspects
from stagewire.errors import (
    LaneFullError,
    RequestPoisonousError,
    ShuttingDownError,
    WorkerHungError,
    WorkerLostError,
)
from stagewire.limits import SUSPECTS

pytestmark = pytest.mark.unit


class Deaths:
    """Workers die one after the other, each in an incarnation of its own."""

    def __init__(self, **options):
        self.suspects = Suspects(**options)
        self.count = 0

    def die(self, *executed, queued=(), error=None):
        """Lets a worker die under requests; returns the reason that each of them is told."""
        self.count += 1
        error = error or WorkerLostError("gone")
        names = frozenset(map(RequestId, executed))
        return {
            name: self.suspects.judge(RequestId(name), error, Incarnation(self.count), names).reason
            for name in (*executed, *queued)
        }

    def admit(self, name, *running):
        self.suspects.admit(RequestId(name), {*map(RequestId, running)})


def test_the_first_death_blames_nobody():
    deaths = Deaths()

    assert deaths.die("p", "q") == {"p": "WORKER_LOST", "q": "WORKER_LOST"}

    deaths.admit("p", "q")
    deaths.admit("q", "p")


@pytest.mark.parametrize("error", [WorkerLostError("gone"), WorkerHungError("hung")])
def test_a_request_that_is_executed_at_two_deaths_is_refused_from_then_on(error):
    deaths = Deaths()
    deaths.die("p", error=error)

    assert deaths.die("p", error=error) == {"p": "REQUEST_POISONOUS"}

    with pytest.raises(RequestPoisonousError, match="died 2 times while they executed") as caught:
        deaths.admit("p")
    assert caught.value.facts == {"id": "p", "deaths": "2"}
    deaths.admit("another")


def test_whoever_waited_in_a_lane_is_not_suspected():
    deaths = Deaths()

    for _ in range(3):
        answers = deaths.die("p", queued=("waiting",))

    assert answers == {"p": "REQUEST_POISONOUS", "waiting": "WORKER_LOST"}
    deaths.admit("waiting")


def test_another_bystander_each_time_stays_free():
    deaths = Deaths()
    deaths.die("p", "first")

    assert deaths.die("p", "second") == {"p": "REQUEST_POISONOUS", "second": "WORKER_LOST"}

    deaths.admit("first")
    deaths.admit("second")


def test_success_clears_a_bystander():
    deaths = Deaths()
    deaths.die("p", "bystander")
    deaths.suspects.clear(RequestId("bystander"))

    assert deaths.die("p", "bystander")["bystander"] == "WORKER_LOST"

    deaths.admit("bystander")
    assert len(deaths.suspects) == 2


def test_two_that_were_there_at_both_deaths_run_apart_until_the_next_one_tells():
    deaths = Deaths()
    deaths.die("p", "bystander")

    assert set(deaths.die("p", "bystander").values()) == {"WORKER_LOST"}

    deaths.admit("p", "someone")
    with pytest.raises(LaneFullError) as caught:
        deaths.admit("bystander", "p", "someone")
    assert caught.value.retry_delay_ms
    assert deaths.die("p") == {"p": "REQUEST_POISONOUS"}
    deaths.admit("bystander", "someone")
    deaths.suspects.clear(RequestId("bystander"))
    assert len(deaths.suspects) == 1


def test_a_coordinator_that_stops_kills_no_one():
    deaths = Deaths()
    stopping = ShuttingDownError("it stops")

    assert deaths.die("p", error=stopping) == {"p": "SHUTTING_DOWN"}
    assert deaths.die("p", error=stopping) == {"p": "SHUTTING_DOWN"}

    assert len(deaths.suspects) == 0


def test_one_death_counts_once_however_many_stages_of_a_request_were_there():
    deaths = Deaths()
    names = frozenset({RequestId("p")})
    told = [
        deaths.suspects.judge(RequestId("p"), WorkerLostError("gone"), Incarnation(1), names)
        for _ in range(3)
    ]

    assert {error.reason for error in told} == {"WORKER_LOST"}


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first():
    deaths = Deaths(most=3)
    deaths.die("p")
    deaths.die("p")
    for name in ("a", "b"):
        deaths.die(name)
    with pytest.raises(RequestPoisonousError):
        deaths.admit("p")

    deaths.die("c")

    deaths.admit("p")
    assert len(deaths.suspects) == 3
    assert Suspects()._most == SUSPECTS


NAMES = st.sampled_from("abcdefgh")


@given(
    st.lists(
        st.one_of(
            st.frozensets(NAMES, min_size=1, max_size=4).map(lambda names: ("die", names)),
            NAMES.map(lambda name: ("clear", name)),
        ),
        max_size=60,
    )
)
def test_only_who_was_at_two_deaths_since_its_last_success_is_refused(events):
    deaths, seen = Deaths(), dict.fromkeys("abcdefgh", 0)
    for kind, what in events:
        if kind == "clear":
            deaths.suspects.clear(RequestId(what))
            seen[what] = 0
            continue
        answers = deaths.die(*what)
        for name in what:
            seen[name] += 1
            if answers[name] == "REQUEST_POISONOUS":
                assert seen[name] >= 2
        # With somebody alone at its second death there is no doubt.
        if len(what) == 1 and seen[name] >= 2:
            assert answers[name] == "REQUEST_POISONOUS"
    for name, count in seen.items():
        if count < 2:
            deaths.admit(name, *"abcdefgh")
