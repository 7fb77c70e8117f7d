"""The flow out of one source: order, rules, and credit that the slowest consumer decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pipeline.flow import Flow
from coordinator.pipeline.topology import Endpoint, Source
from stagewire.errors import PayloadCorruptError, StageError, TensorMismatchError
from stagewire.items import to_chunks
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType

pytestmark = pytest.mark.unit

LEFT, RIGHT = Endpoint("left", "x"), Endpoint("right", "x")


def flow(*targets, is_stream=True):
    port = Port("y", DataType.FLOAT32, (Dimension("n", 1 << 24),), is_stream)
    return Flow(Source(Endpoint("one", "y"), port, targets), targets)


def items(count, extent=4, start=0):
    value = np.ones(extent, np.float32)
    for sequence in range(start, start + count):
        yield from (chunk.item for chunk in to_chunks("y", sequence, value))


def test_what_crossed_is_counted_for_each_edge():
    it = flow(LEFT, RIGHT)

    wholes = [it.accept(item) for item in items(2, extent=600_000)]

    assert wholes == [False, False, True] * 2
    assert [(hop.items, hop.size_bytes, hop.transports) for hop in it.hops] == [
        (2, 4_800_000, {"chunked"})
    ] * 2


def test_credit_returns_when_the_slowest_consumer_has_finished():
    it = flow(LEFT, RIGHT)
    for item in items(3):
        it.accept(item)

    assert it.finish_items(LEFT, 3, 48) == (0, 0)
    assert it.finish_items(RIGHT, 1, 16) == (1, 16)
    assert it.finish_items(RIGHT, 2, 32) == (2, 32)


def test_an_output_that_nobody_takes_gives_its_credit_back_itself():
    it = flow()
    for item in items(WINDOW_ITEMS * 2):
        assert it.accept(item)
        assert it.take_credit() == (1, 16)


def test_a_consumer_that_takes_nothing_more_holds_nobody_back():
    it = flow(LEFT, RIGHT)
    for item in items(3):
        it.accept(item)
    it.finish_items(LEFT, 3, 48)

    assert it.close(RIGHT) == (3, 48)
    assert [hop.target for hop in it.open_hops] == [LEFT]
    assert it.close(LEFT) == (0, 0)
    it.accept(next(items(1, start=3)))
    assert it.take_credit() == (1, 16)


@pytest.mark.parametrize(("items_done", "bytes_done"), [(2, 16), (1, 17), (1 << 40, 1 << 40)])
def test_credit_for_what_never_came_is_refused(items_done, bytes_done):
    it = flow(LEFT, RIGHT)
    it.accept(next(items(1)))

    with pytest.raises(PayloadCorruptError, match="gave back more"):
        it.finish_items(LEFT, items_done, bytes_done)


def test_a_source_that_sends_more_items_than_its_credit_is_refused():
    it = flow(LEFT)
    for item in items(WINDOW_ITEMS):
        it.accept(item)

    with pytest.raises(PayloadCorruptError, match="credit"):
        it.accept(next(items(1, start=WINDOW_ITEMS)))


def test_a_source_that_sends_more_bytes_than_its_credit_is_refused():
    it = flow(LEFT)
    for item in items(1, extent=WINDOW_BYTES // 2):
        it.accept(item)

    with pytest.raises(PayloadCorruptError, match="credit"):
        it.accept(next(items(1, start=1)))


def test_an_item_larger_than_the_window_passes_alone_and_opens_it_again():
    it = flow(LEFT)
    sent = list(items(1, extent=WINDOW_BYTES // 2))
    assert [it.accept(item) for item in sent][-1]

    it.finish_items(LEFT, 1, 2 * WINDOW_BYTES)

    assert it.accept(next(items(1, start=1)))


def test_a_port_that_is_no_stream_takes_one_item_and_not_two():
    it = flow(LEFT, is_stream=False)
    it.accept(next(items(1)))

    with pytest.raises(TensorMismatchError, match="no stream"):
        it.accept(next(items(1, start=1)))


@pytest.mark.parametrize(
    ("is_stream", "sent", "said", "problem"),
    [
        (True, 0, 0, None),
        (True, 2, 2, None),
        (True, 2, None, None),
        (True, 2, 3, PayloadCorruptError),
        (True, 2, 1, PayloadCorruptError),
        (False, 1, 1, None),
        (False, 0, 0, TensorMismatchError),
        (False, 0, None, TensorMismatchError),
    ],
)
def test_an_end_must_say_what_came(is_stream, sent, said, problem):
    it = flow(LEFT, is_stream=is_stream)
    for item in items(sent):
        it.accept(item)

    found = it.end(said)

    assert found is None if problem is None else isinstance(found, problem)


def test_an_end_inside_an_item_is_a_fault():
    it = flow(LEFT)
    it.accept(next(items(1, extent=600_000)))

    assert isinstance(it.end(None), PayloadCorruptError)


def test_nothing_comes_after_the_end():
    it = flow(LEFT)
    it.end(0)

    with pytest.raises(PayloadCorruptError, match="after the end"):
        it.accept(next(items(1)))


@given(
    st.lists(st.tuples(st.sampled_from(["send", "left", "right"]), st.integers(1, 30)), max_size=60)
)
def test_what_is_under_way_never_exceeds_the_window(steps):
    it = flow(LEFT, RIGHT)
    sent, done, credit = 0, {LEFT: 0, RIGHT: 0}, WINDOW_ITEMS
    for what, count in steps:
        for _ in range(count):
            if what == "send":
                if credit == 0:
                    with pytest.raises(StageError):
                        it.accept(next(items(1, start=sent)))
                    return
                it.accept(next(items(1, start=sent)))
                sent, credit = sent + 1, credit - 1
            else:
                target = LEFT if what == "left" else RIGHT
                if done[target] < sent:
                    done[target] += 1
                    granted, _ = it.finish_items(target, 1, 16)
                    credit += granted
        assert sent - min(done.values()) + credit == WINDOW_ITEMS
