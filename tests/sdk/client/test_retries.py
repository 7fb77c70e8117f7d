"""Idempotent requests of both clients: what is sent again, how often and when."""

import itertools
import time

import numpy as np
import pytest

from stagewire.errors import (
    DeadlineExceededError,
    FieldInvalidError,
    LaneFullError,
    RequestDuplicateError,
    StageFaultError,
    StageStartingError,
    WorkerLostError,
)
from stagewire.limits import ATTEMPTS, MESSAGE_BYTES

pytestmark = pytest.mark.integration

SECONDS = 120


def lost():
    return WorkerLostError("worker cpu ended")


def attempts_seen(server):
    return [(opening.attempt, opening.idempotent) for opening in server.openings]


def test_an_idempotent_request_is_sent_again_under_the_same_id(client, server):
    server.failures.extend([lost(), LaneFullError("full", retry_delay_ms=5)])

    result = client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)

    assert result.text("a") == "x"
    assert result.attempts == 3
    assert attempts_seen(server) == [(1, True), (2, True), (3, True)]
    (request_id,) = {opening.request_id for opening in server.openings}
    assert request_id
    assert result.receipt.request_id == request_id


def test_an_id_of_the_caller_is_kept(client, server):
    server.failures.append(lost())
    client.run("echo", {"a": "x"}, request_id="mine", idempotent=True, timeout=SECONDS)
    assert [opening.request_id for opening in server.openings] == ["mine", "mine"]


def test_nothing_is_sent_twice_unasked(client, server):
    server.failures.append(lost())
    with pytest.raises(WorkerLostError) as failure:
        client.run("echo", {"a": "x"}, timeout=SECONDS)
    server.failures.append(lost())
    with client.infer("echo", {"a": "x"}, timeout=SECONDS) as call, pytest.raises(WorkerLostError):
        next(call)
    assert attempts_seen(server) == [(0, False), (0, False)]
    assert "attempts" not in failure.value.facts
    assert client.run("echo", {"a": "x"}, timeout=SECONDS).attempts == 1


def test_a_failure_that_another_attempt_does_not_mend_is_not_tried_again(client, server):
    server.failures.append(StageFaultError("the stage failed on its input"))
    with pytest.raises(StageFaultError) as failure:
        client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
    assert len(server.openings) == 1
    assert failure.value.facts["attempts"] == "1"


def test_after_the_last_attempt_the_failure_says_how_many_there_were(client, server):
    server.failures.extend([lost() for _ in range(ATTEMPTS + 3)])
    with pytest.raises(WorkerLostError) as failure:
        client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
    assert len(server.openings) == ATTEMPTS
    assert failure.value.facts["attempts"] == str(ATTEMPTS)


def test_a_broken_coordinator_is_soon_left_alone(client, server):
    server.failures.extend([lost() for _ in range(100)])
    sent = []
    for _ in range(10):
        with pytest.raises(WorkerLostError):
            client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
        sent.append(len(server.openings) - sum(sent))
    assert sent[0] == ATTEMPTS
    assert sent[2:] == [1] * 8


def test_success_gives_the_budget_back(client, server):
    server.failures.extend([lost() for _ in range(20)])
    for _ in range(5):
        with pytest.raises(WorkerLostError):
            client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
    server.failures.clear()
    for _ in range(60):
        client.run("echo", {"a": "x"}, timeout=SECONDS)
    server.failures.append(lost())
    assert client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS).attempts == 2


def test_the_coordinator_says_how_long_to_wait(client, server):
    server.failures.append(StageStartingError("starting", retry_delay_ms=300))
    began = time.monotonic()
    client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
    assert time.monotonic() - began >= 0.3


def test_a_delay_that_is_longer_than_the_time_left_is_not_waited_for(client, server):
    server.failures.append(StageStartingError("starting", retry_delay_ms=3_600_000))
    with pytest.raises(StageStartingError):
        client.run("echo", {"a": "x"}, idempotent=True, timeout=60)
    assert len(server.openings) == 1


def test_the_time_is_that_of_all_attempts_together(client, server):
    server.failures.append(lost())
    with pytest.raises(DeadlineExceededError):
        client.run("stuck", {"a": "x"}, idempotent=True, timeout=0.5)
    assert len(server.openings) == 2


def test_an_attempt_that_still_ends_is_waited_for_and_an_answered_one_is_not(client, server):
    server.failures.extend([lost(), RequestDuplicateError("it is running", retry_delay_ms=5)])
    result = client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)
    assert result.attempts == 3
    server.failures.extend([lost(), RequestDuplicateError("it was sent before")])
    with pytest.raises(RequestDuplicateError):
        client.run("echo", {"a": "x"}, idempotent=True, timeout=SECONDS)


def test_inputs_over_one_message_are_sent_again_whole(client, server):
    value = np.arange(2 * MESSAGE_BYTES, dtype=np.uint8)
    server.failures.append(lost())
    result = client.run("echo", {"a": value, "b": "x"}, idempotent=True, timeout=SECONDS)
    assert np.array_equal(result.output("a"), value)
    assert result.attempts == 2
    assert attempts_seen(server) == [(1, True), (2, True)]


# --- infer ---


def test_a_call_is_sent_again_while_nothing_has_come_out(client, server):
    server.failures.extend([lost(), lost()])
    sources = {"a": ["x", "y"], "b": np.arange(3)}
    with client.infer("echo", sources, idempotent=True, timeout=SECONDS) as call:
        got = sorted(output.port for output in call)
        assert got == ["a", "a", "b"]
        assert call.attempts == 3
        assert call.receipt.request_id == call.request_id == server.openings[0].request_id
    assert attempts_seen(server) == [(1, True), (2, True), (3, True)]


def test_inputs_that_were_not_given_end_by_themselves(client, server):
    server.failures.append(lost())
    with client.infer("echo", {"a": "x"}, idempotent=True, timeout=SECONDS) as call:
        call.end()
        assert [output.value for output in call] == ["x"]


def test_a_call_whose_outputs_have_begun_is_not_sent_again(client, server):
    with client.infer("late", {"a": ["x", "y", "z"]}, idempotent=True, timeout=SECONDS) as call:
        assert [next(call).value, next(call).value] == ["x", "y"]
        with pytest.raises(WorkerLostError):
            next(call)
        assert call.attempts == 1
    assert len(server.openings) == 1


def test_what_can_be_read_only_once_is_refused(client, server):
    for source in (iter(["x"]), (text for text in ["x"]), itertools.repeat("x")):
        with pytest.raises(FieldInvalidError, match="only once"):
            client.infer("echo", {"a": source}, idempotent=True)
    with (
        client.infer("echo", {"a": "x"}, idempotent=True, timeout=SECONDS) as call,
        pytest.raises(FieldInvalidError, match="takes all of its inputs"),
    ):
        call.send("b", "y")


def test_leaving_ends_a_call_that_waits_for_its_next_attempt(client, server):
    server.failures.append(StageStartingError("starting", retry_delay_ms=60_000))
    with client.infer("echo", {"a": "x"}, idempotent=True, timeout=SECONDS) as call:
        while call.attempts == 1:
            pass
    assert len(server.openings) == 1
