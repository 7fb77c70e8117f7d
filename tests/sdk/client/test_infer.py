"""`Client.infer` against a real server: both directions, credit, failures, ends."""

import threading

import numpy as np
import pytest

from stagewire.errors import (
    CancelledError,
    DeadlineExceededError,
    FieldInvalidError,
    LaneFullError,
    PayloadCorruptError,
    PipelineUnknownError,
    WorkerLostError,
)
from stagewire.limits import CHUNK_BYTES, MESSAGE_BYTES, WINDOW_BYTES, WINDOW_ITEMS

pytestmark = pytest.mark.integration

SECONDS = 120


def in_thread(work):
    """Runs work beside the test and returns what joins it and gives what it raised."""
    raised = []

    def run():
        try:
            work()
        except Exception as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def join():
        thread.join(SECONDS)
        assert not thread.is_alive()
        return raised[0] if raised else None

    return join


def send_for_ever(call, port, value):
    while True:
        call.send(port, value)


def test_items_come_out_as_they_went_in(client):
    with client.infer("echo", timeout=SECONDS) as call:
        call.send("a", "one")
        call.send("b", np.arange(3))
        call.send("a", "two")
        call.end()
        got = [(item.port, item.sequence, item.value) for item in call]
    assert [item[:2] for item in got] == [("a", 0), ("b", 0), ("a", 1)]
    assert got[0][2] == "one"
    assert got[1][2].tolist() == [0, 1, 2]
    assert got[2][2] == "two"
    assert call.receipt.request_id == call.request_id == "chosen"


def test_an_answer_can_be_had_before_the_next_item_is_sent(client):
    with client.infer("echo", timeout=SECONDS) as call:
        for number in range(20):
            call.send("a", str(number))
            assert next(call).value == str(number)
        call.end("a")
        call.end("b")
        assert list(call) == []


def test_more_items_than_the_window_pass(client):
    count = 5 * WINDOW_ITEMS
    with client.infer("echo", timeout=SECONDS) as call:

        def send():
            for number in range(count):
                call.send("a", str(number))
            call.end()

        join = in_thread(send)
        got = [item.value for item in call]
    assert join() is None
    assert got == [str(number) for number in range(count)]


def test_more_bytes_than_the_window_pass(client):
    pieces = [np.full(CHUNK_BYTES * 3 // 2, number, np.uint8) for number in range(20)]
    with client.infer("echo", {"a": pieces}, timeout=SECONDS) as call:
        call.end()
        got = [item.value for item in call]
    assert len(got) == 20
    assert all(np.array_equal(piece, back) for piece, back in zip(pieces, got, strict=True))


def test_an_item_larger_than_the_window_passes(client):
    value = np.arange(3 * WINDOW_BYTES // 4, dtype=np.int32)
    with client.infer("echo", {"a": [value, value]}, timeout=SECONDS) as call:
        call.end()
        assert [np.array_equal(item.value, value) for item in call] == [True, True]


def test_what_was_sent_may_change_afterwards(client):
    value = np.zeros(MESSAGE_BYTES * 2, np.uint8)
    with client.infer("echo", timeout=SECONDS) as call:
        call.send("a", value)
        value[:] = 1
        call.end()
        (output,) = call
    assert not output.value.any()


def test_two_threads_may_send_on_one_port(client):
    value = np.arange(CHUNK_BYTES + 1, dtype=np.uint8)
    with client.infer("echo", timeout=SECONDS) as call:

        def send():
            for _ in range(4):
                call.send("a", value)

        joins = [in_thread(send), in_thread(send)]
        got = [next(call) for _ in range(8)]
        assert [join() for join in joins] == [None, None]
        call.end()
        assert list(call) == []
    assert all(np.array_equal(item.value, value) for item in got)


def test_inputs_of_every_kind_are_sent_and_ended(client):
    sources = {"a": iter(["x", "y"]), "b": np.arange(2)}
    with client.infer("echo", sources, timeout=SECONDS) as call:
        got = {}
        for item in call:
            got.setdefault(item.port, []).append(item.value)
    assert got["a"] == ["x", "y"]
    assert [item.tolist() for item in got["b"]] == [[0, 1]]


def test_a_given_input_and_a_sent_one_go_together(client):
    with client.infer("echo", {"b": "fixed"}, timeout=SECONDS) as call:
        call.send("a", "sent")
        call.end()
        assert sorted(item.value for item in call) == ["fixed", "sent"]


def test_a_pipeline_may_answer_only_at_the_end(client):
    with client.infer("gather", {"a": ["x"] * 500}, timeout=SECONDS) as call:
        call.end()
        assert [(item.port, item.value) for item in call] == [("text", "500 and 0")]


def test_sending_waits_for_credit(client, server):
    with client.infer("frugal", timeout=SECONDS) as call:
        assert call.request_id == "chosen"
        join = in_thread(lambda: call.send("a", "abc"))
        assert "item" not in server.seen
        server.allow.set()
        assert next(call).value == "abc"
        assert join() is None
        call.end()
        assert list(call) == []


# --- failures ---


def test_a_refusal_at_the_start_reaches_the_iterating_side(client):
    with client.infer("nothing", timeout=SECONDS) as call, pytest.raises(PipelineUnknownError):
        next(call)


def test_a_refusal_at_the_start_reaches_the_sending_side(client):
    with client.infer("full", timeout=SECONDS) as call:
        with pytest.raises(LaneFullError) as failure:
            call.send("a", "x")
        with pytest.raises(LaneFullError):
            call.end()
        with pytest.raises(LaneFullError):
            _ = call.request_id
        with pytest.raises(LaneFullError):
            _ = call.receipt
    assert failure.value.retry_delay_ms == 40


def test_a_failure_in_the_middle_comes_after_the_items_before_it(client):
    with client.infer("late", {"a": ["x", "y", "z"]}, timeout=SECONDS) as call:
        assert [next(call).value, next(call).value] == ["x", "y"]
        with pytest.raises(WorkerLostError) as failure:
            next(call)
    assert failure.value.facts == {"worker": "cpu"}


def test_a_sender_that_waits_for_credit_gets_the_failure(client):
    with client.infer("late", timeout=SECONDS) as call, pytest.raises(WorkerLostError):
        send_for_ever(call, "a", "x")


def test_an_input_that_does_not_exist_is_refused_with_those_that_do(client):
    with client.infer("echo", timeout=SECONDS) as call:
        with pytest.raises(FieldInvalidError, match="it has a, b"):
            call.send("c", "x")
        with pytest.raises(FieldInvalidError, match="it has a, b"):
            call.end("c")


def test_an_item_after_the_end_is_refused(client):
    with client.infer("echo", timeout=SECONDS) as call:
        call.end("a")
        call.end("a")
        with pytest.raises(FieldInvalidError, match="has ended"):
            call.send("a", "x")


@pytest.mark.parametrize(
    ("pipeline", "inputs"),
    [
        ("damaged", {"a": np.zeros(CHUNK_BYTES, np.uint8)}),
        ("damaged", {"a": "text"}),
        ("greedy", {"a": ["x"] * 300}),
        ("silent", {"a": "x"}),
        ("mute", {}),
        ("short", {"a": "x"}),
    ],
)
def test_a_server_that_breaks_the_rules_is_corrupt(client, server, pipeline, inputs):
    with client.infer(pipeline, inputs, timeout=SECONDS) as call:
        if pipeline == "greedy":
            # Nothing is consumed until the call has failed.
            with pytest.raises(PayloadCorruptError, match="credit"):
                send_for_ever(call, "b", "x")
            return
        if pipeline != "mute":
            call.end()
        with pytest.raises(PayloadCorruptError):
            list(call)


def test_what_an_iterator_of_the_caller_raises_ends_the_call(client, server):
    def broken():
        yield "x"
        raise ZeroDivisionError("in the caller's own code")

    with (
        client.infer("echo", {"a": broken()}, timeout=SECONDS) as call,
        pytest.raises(ZeroDivisionError),
    ):
        list(call)
    assert server.cancelled.wait(SECONDS)


def test_an_unknown_given_input_ends_the_call(client):
    with (
        client.infer("echo", {"c": "x"}, timeout=SECONDS) as call,
        pytest.raises(FieldInvalidError, match="it has a, b"),
    ):
        list(call)


# --- ends ---


def test_the_deadline_reaches_both_sides(client, server):
    with client.infer("stuck", timeout=0.5) as call:
        join = in_thread(lambda: send_for_ever(call, "a", "x"))
        with pytest.raises(DeadlineExceededError):
            next(call)
        assert isinstance(join(), DeadlineExceededError)
    assert server.cancelled.wait(SECONDS)


def test_leaving_early_cancels_the_request(client, server):
    with client.infer("stuck", timeout=SECONDS) as call:
        call.send("a", "x")
    assert server.cancelled.wait(SECONDS)
    with pytest.raises(CancelledError):
        next(call)
    with pytest.raises(CancelledError):
        call.send("a", "x")


def test_an_error_in_the_block_cancels_the_request(client, server):
    def fail():
        with client.infer("stuck", timeout=SECONDS) as call:
            assert call.request_id == "chosen"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert server.cancelled.wait(SECONDS)


def test_cancelling_wakes_both_sides(client, server):
    with client.infer("stuck", timeout=SECONDS) as call:
        joins = [in_thread(lambda: send_for_ever(call, "a", "x")), in_thread(lambda: next(call))]
        assert call.request_id == "chosen"
        call.cancel()
        assert [type(join()) for join in joins] == [CancelledError, CancelledError]
    assert server.cancelled.wait(SECONDS)


def test_a_given_input_that_waits_is_let_go_when_the_call_is_left(client, server):
    with client.infer("stuck", {"a": ["x"] * 1000}, timeout=SECONDS) as call:
        assert call.request_id == "chosen"
    assert server.cancelled.wait(SECONDS)


def test_closing_the_client_ends_its_calls(client):
    with client.infer("stuck", timeout=SECONDS) as call:
        assert call.request_id == "chosen"
        client.close()
        with pytest.raises(CancelledError):
            next(call)


def test_a_call_starts_when_it_is_entered_and_only_once(client, server):
    call = client.infer("echo", timeout=SECONDS)
    for use in (lambda: next(call), lambda: call.send("a", "x"), call.end):
        with pytest.raises(RuntimeError, match="with"):
            use()
    with call:
        call.end()
        assert list(call) == []
    with pytest.raises(RuntimeError, match="once"):
        call.__enter__()
    assert len(server.openings) == 1


def test_the_receipt_comes_after_the_last_output(client):
    with client.infer("echo", {"a": "x"}, timeout=SECONDS, request_id="mine") as call:
        with pytest.raises(RuntimeError, match="iterate"):
            _ = call.receipt
        call.end()
        list(call)
        assert call.receipt.request_id == "mine"


def test_credit_is_granted_in_quarters_of_the_window(client, server):
    with client.infer("echo", {"a": ["x"] * WINDOW_ITEMS}, timeout=SECONDS) as call:
        call.end()
        assert len(list(call)) == WINDOW_ITEMS
    assert server.seen.count("output_credit") <= 4


def test_no_thread_is_left_behind(client):
    before = threading.active_count()
    for _ in range(5):
        with client.infer("echo", {"a": "x"}, timeout=SECONDS) as call:
            call.end()
            list(call)
    left = [thread for thread in threading.enumerate() if thread.name == "stagewire-call"]
    assert left == []
    assert threading.active_count() <= before + 10
