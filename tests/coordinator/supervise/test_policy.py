from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.supervise.policy import (
    Breaker,
    Decision,
    GiveUp,
    RestartHistory,
    RestartLimits,
    StartAgain,
)

pytestmark = pytest.mark.unit

LIMITS = RestartLimits()
MIDDLE = 0.5
"""The random number that leaves a delay as it is."""


def lose_at(
    times: Iterable[float], random_unit: float = MIDDLE
) -> tuple[RestartHistory, list[Decision]]:
    history = RestartHistory()
    decisions = []
    for now in times:
        history, decision = history.lost(now, random_unit, LIMITS)
        decisions.append(decision)
    return history, decisions


def delays(decisions: list[Decision]) -> list[float]:
    return [item.delay_seconds for item in decisions if isinstance(item, StartAgain)]


def test_a_crash_loop_is_answered_by_five_growing_delays_and_then_the_breaker():
    history, decisions = lose_at([0, 1, 2, 3, 4, 5])

    assert delays(decisions) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6])
    assert decisions[-1] == GiveUp(
        "STAGE_FAILED",
        "lost 6 times in 60 s; tried once more after 300 s; read `coordinator status`, mend the"
        " cause, then `coordinator restart WORKER`",
        trial_seconds=300,
    )
    assert history.breaker is Breaker.OPEN


def test_losses_spread_over_time_never_open_the_breaker_and_wait_up_to_the_longest_delay():
    _, decisions = lose_at(range(0, 15 * 12, 15))

    expected = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30]
    assert delays(decisions) == pytest.approx(expected)


def test_a_loss_exactly_one_period_old_does_not_count():
    _, decisions = lose_at([0, 12, 24, 36, 48, 60])
    assert isinstance(decisions[-1], StartAgain)

    _, decisions = lose_at([0, 12, 24, 36, 48, 59.9])
    assert isinstance(decisions[-1], GiveUp)


@pytest.mark.parametrize(("random_unit", "delay"), [(0.0, 0.08), (0.5, 0.1), (1.0, 0.12)])
def test_a_delay_is_drawn_a_fifth_shorter_or_longer(random_unit: float, delay: float):
    _, decisions = lose_at([0], random_unit)

    assert delays(decisions) == pytest.approx([delay])


def test_a_minute_of_being_ready_forgets_earlier_losses():
    history, _ = lose_at([0, 1, 2, 3, 4])

    history, decision = history.ready(6).lost(66, MIDDLE, LIMITS)

    assert decision == StartAgain(pytest.approx(0.1), restart=1)
    assert history.losses == (66,)


def test_less_than_a_minute_of_being_ready_forgets_nothing():
    history, _ = lose_at([0, 1, 2, 3, 4])

    _, decision = history.ready(6).lost(59, MIDDLE, LIMITS)

    assert isinstance(decision, GiveUp)


def test_a_long_wait_before_being_ready_is_not_calm():
    history, _ = lose_at([0, 1])

    _, decision = history.lost(500, MIDDLE, LIMITS)

    assert decision == StartAgain(pytest.approx(0.4), restart=3)


def test_a_person_closes_the_breaker():
    history, _ = lose_at([0, 1, 2, 3, 4, 5])

    history, decision = history.reset().lost(6, MIDDLE, LIMITS)

    assert decision == StartAgain(pytest.approx(0.1), restart=1)
    assert history.breaker is Breaker.CLOSED


@pytest.mark.parametrize("ready_at", [None, 310], ids=["while it starts", "before it is calm"])
def test_one_loss_on_trial_opens_the_breaker_again(ready_at):
    history, _ = lose_at([0, 1, 2, 3, 4, 5])

    history = history.on_trial()
    assert history.breaker_at(305, LIMITS) is Breaker.HALF_OPEN
    if ready_at is not None:
        history = history.ready(ready_at)
    history, decision = history.lost(369, MIDDLE, LIMITS)

    assert isinstance(decision, GiveUp)
    assert (decision.trial_seconds, "on trial" in decision.message) == (300, True)
    assert history.breaker is Breaker.OPEN


def test_a_calm_on_trial_closes_the_breaker_by_itself():
    history, _ = lose_at([0, 1, 2, 3, 4, 5])

    history = history.on_trial().ready(310)

    assert history.breaker_at(369.9, LIMITS) is Breaker.HALF_OPEN
    assert history.breaker_at(370, LIMITS) is Breaker.CLOSED
    history, decision = history.lost(370, MIDDLE, LIMITS)
    assert decision == StartAgain(pytest.approx(0.1), restart=1)
    assert history.breaker is Breaker.CLOSED


def test_a_refused_start_is_tried_again_by_a_person_alone():
    history, decision = RestartHistory().lost(0, MIDDLE, LIMITS, is_refused=True)

    assert decision == GiveUp(
        "STAGE_FAILED",
        "refused; read `coordinator status`, mend the cause, then `coordinator restart WORKER`",
        trial_seconds=None,
    )
    assert history.breaker is Breaker.OPEN


def test_a_restart_says_when_and_for_which_time():
    _, decisions = lose_at([0, 1])

    assert decisions[-1].message == "started again after 0.2 s, restart 2"


def test_a_worker_that_flaps_for_weeks_is_still_answered():
    _, decisions = lose_at(range(0, 15 * 5000, 15))

    assert delays(decisions)[-1] == 30


@given(
    gaps=st.lists(st.floats(0, 100), max_size=40),
    random_unit=st.floats(0, 1),
    ready=st.booleans(),
)
def test_within_any_period_there_are_at_most_five_restarts(
    gaps: list[float], random_unit: float, ready: bool
):
    history, now, restarts = RestartHistory(), 0.0, []
    for gap in gaps:
        now += gap
        history, decision = history.lost(now, random_unit, LIMITS)
        if isinstance(decision, StartAgain):
            restarts.append(now)
            assert 0.08 <= decision.delay_seconds <= 36
        if ready:
            history = history.ready(now)
    for start in restarts:
        within = [time for time in restarts if start <= time < start + LIMITS.period_seconds]
        assert len(within) <= LIMITS.intensity
