"""Turns on real threads: one execution computes, and it is the one whose listener has the least."""

import asyncio
import threading
import time

import numpy as np
import pytest

from stagewire.credit import Credit
from stagewire.errors import StageError, StageFaultError
from stagewire.items import to_chunks
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker.execution import LaneExecution
from stagewire.worker.executor import ExecutionEnded, StageOrder
from stagewire.worker.lane import Lane
from stagewire.worker.outbox import Outbox
from stagewire.worker.turns import Turns

pytestmark = pytest.mark.unit

SECONDS = 60
PER_SECOND = 10
INPUT = Port("x", DataType.FLOAT32, (Dimension("n", 64),), True)
OUTPUT = Port("y", DataType.INT8, (Dimension("n", 1 << 14),), True)
ORDER = StageOrder("speak", "test", "cpu", inputs=(INPUT,), outputs=(OUTPUT,), concurrency=2)


def audio(seconds: float):
    return np.ones(int(seconds * PER_SECOND), np.int8)


class Run:
    """One execution on a thread of its own, which takes turns."""

    def __init__(self, bench, name, work, *, credit=None, deadline=None):
        self.name = name
        self.execution = LaneExecution(
            len(bench.runs),
            ORDER,
            deadline=deadline,
            credits={"y": credit or Credit(WINDOW_ITEMS, WINDOW_BYTES)},
            outbox=bench.outbox,
            acknowledge=lambda *_: None,
        )
        self.waits, self.error, self.is_busy = threading.Event(), None, True
        self._bench, self._work = bench, work
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _note(self, is_busy):
        self.is_busy = is_busy
        if not is_busy:
            self.waits.set()

    def _run(self):
        try:
            with self._bench.turns.seated(self.execution, self._note) as paced:
                self.execution.times.started = time.monotonic()
                self._work(self, paced)
        except (ExecutionEnded, StageError) as error:
            self.error = error

    def say(self, what):
        self._bench.log.append(f"{self.name} {what}")

    def until_it_waits(self):
        assert self.waits.wait(SECONDS)

    def until_it_ended(self):
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()

    def feed(self):
        for chunk in to_chunks("x", 0, np.ones(4, np.float32)):
            self.execution.push(chunk.item, chunk.payload)


class Bench:
    """The turns of one stage and everything that takes part."""

    def __init__(self):
        self.turns = Turns(OUTPUT, PER_SECOND)
        self.outbox = Outbox(asyncio.get_running_loop())
        self.log, self.runs = [], []

    def start(self, name, work, **options):
        self.runs.append(Run(self, name, work, **options))
        return self.runs[-1]


@pytest.fixture
async def bench():
    return Bench()


def speaks(*lengths, may_begin=None):
    """Work that says when it has the turn, and sends audio."""

    def work(run, paced):
        run.say("began")
        if may_begin is not None:
            assert may_begin.wait(SECONDS)
        for length in lengths:
            paced.send("y", audio(length))
            run.say("went on")

    return work


async def test_one_that_is_far_ahead_lets_one_begin_that_has_nothing(bench):
    second_waits = threading.Event()
    first = bench.start("first", speaks(1000, 1000, may_begin=second_waits))
    second = bench.start("second", speaks(1, 1))
    await asyncio.to_thread(second.until_it_waits)
    second_waits.set()
    for run in (first, second):
        await asyncio.to_thread(run.until_it_ended)

    assert bench.log == [
        "first began",
        "second began",
        "second went on",
        "second went on",
        "first went on",
        "first went on",
    ]


async def test_one_whose_listener_would_run_dry_goes_on(bench):
    second_waits = threading.Event()
    first = bench.start("first", speaks(0.1, 0.1, may_begin=second_waits))
    second = bench.start("second", speaks(1))
    await asyncio.to_thread(second.until_it_waits)
    second_waits.set()
    for run in (first, second):
        await asyncio.to_thread(run.until_it_ended)

    assert bench.log == [
        "first began",
        "first went on",
        "first went on",
        "second began",
        "second went on",
    ]


async def test_two_that_are_ahead_alternate(bench):
    second_waits = threading.Event()
    first = bench.start("first", speaks(500, 500, 500, may_begin=second_waits))
    second = bench.start("second", speaks(800, 500, 500))
    await asyncio.to_thread(second.until_it_waits)
    second_waits.set()
    for run in (first, second):
        await asyncio.to_thread(run.until_it_ended)

    assert bench.log == [
        "first began",
        "second began",
        # 500 s are ahead of the first listener, 800 s of the second.
        "first went on",
        # 1000 s and 800 s.
        "second went on",
        # 1000 s and 1300 s.
        "first went on",
        "second went on",
        "first went on",
        "second went on",
    ]


async def test_never_do_two_compute_at_once(bench):
    computing, most = [], []

    def work(run, paced):
        for _ in range(20):
            computing.append(run.name)
            most.append(len(computing))
            computing.remove(run.name)
            paced.send("y", audio(1))

    runs = [bench.start(name, work) for name in "abcd"]
    for run in runs:
        await asyncio.to_thread(run.until_it_ended)

    assert len(most) == 80
    assert max(most) == 1


async def test_one_that_waits_for_input_gives_its_turn_away(bench):
    def work(run, paced):
        paced.receive("x")
        run.say("received")

    first = bench.start("first", work)
    await asyncio.to_thread(first.until_it_waits)
    second = bench.start("second", speaks(1))
    await asyncio.to_thread(second.until_it_ended)
    first.feed()
    await asyncio.to_thread(first.until_it_ended)

    assert bench.log == ["second began", "second went on", "first received"]


async def test_one_that_waits_for_credit_gives_its_turn_away(bench):
    first = bench.start("first", speaks(0.1, 0.1), credit=Credit(1, 1))
    await asyncio.to_thread(first.until_it_waits)
    second = bench.start("second", speaks(1))
    await asyncio.to_thread(second.until_it_ended)
    assert bench.log[-1] == "second went on"

    first.execution.grant("y", 1, 100)
    await asyncio.to_thread(first.until_it_ended)

    assert bench.log[-1] == "first went on"


async def test_a_cancel_ends_the_wait_for_a_turn_and_others_go_on(bench):
    may_end = threading.Event()
    first = bench.start("first", speaks(1, may_begin=may_end))
    second = bench.start("second", speaks(1))
    third = bench.start("third", speaks(1))
    for run in (second, third):
        await asyncio.to_thread(run.until_it_waits)

    second.execution.cancel()
    bench.turns.wake()
    await asyncio.to_thread(second.until_it_ended)
    may_end.set()
    for run in (first, third):
        await asyncio.to_thread(run.until_it_ended)

    assert isinstance(second.error, ExecutionEnded)
    assert not any(line.startswith("second") for line in bench.log)
    assert "third went on" in bench.log


async def test_one_that_is_given_up_while_it_waits_ends_with_the_reason(bench):
    second_waits, has_turn, may_end = (threading.Event() for _ in range(3))
    given = {}

    def is_ahead(run, paced):
        given["paced"] = paced
        assert second_waits.wait(SECONDS)
        paced.send("y", audio(1000))

    def holds(run, paced):
        has_turn.set()
        assert may_end.wait(SECONDS)

    first = bench.start("first", is_ahead)
    second = bench.start("second", holds)
    await asyncio.to_thread(second.until_it_waits)
    second_waits.set()
    assert await asyncio.to_thread(has_turn.wait, SECONDS)

    given["paced"].give_up(StageFaultError("its child is gone"))
    await asyncio.to_thread(first.until_it_ended)
    may_end.set()
    await asyncio.to_thread(second.until_it_ended)

    assert isinstance(first.error, StageFaultError)


async def test_a_deadline_ends_the_wait_for_a_turn(bench):
    may_end = threading.Event()
    first = bench.start("first", speaks(1, may_begin=may_end))
    second = bench.start("second", speaks(1), deadline=time.monotonic() + 0.05)
    await asyncio.to_thread(second.until_it_ended)
    may_end.set()
    await asyncio.to_thread(first.until_it_ended)

    assert isinstance(second.error, ExecutionEnded)


async def test_a_failure_gives_the_turn_away(bench):
    def work(run, paced):
        raise ExecutionEnded("as told")

    first = bench.start("first", work)
    await asyncio.to_thread(first.until_it_ended)
    second = bench.start("second", speaks(1))
    await asyncio.to_thread(second.until_it_ended)

    assert bench.log == ["second began", "second went on"]


async def test_who_waits_for_a_turn_is_not_busy_and_the_wait_is_not_its_work(bench):
    may_end = threading.Event()
    first = bench.start("first", speaks(1000, 1, may_begin=may_end))
    second = bench.start("second", speaks(1))
    await asyncio.to_thread(second.until_it_waits)
    assert first.is_busy
    assert not second.is_busy
    may_end.set()
    for run in (first, second):
        await asyncio.to_thread(run.until_it_ended)

    # The first waited while it ran, the second before it began.
    assert first.execution.times.waited_seconds > 0
    assert second.execution.times.waited_seconds == 0


class Stage:
    """A loaded stage that runs a function of the test."""

    def __init__(self, run):
        self.run, self.thread_settings = run, {}

    def example(self):
        return {}

    def release(self):
        pass


async def test_a_lane_lets_its_executions_take_turns(bench):
    log, ended, waits = [], threading.Semaphore(0), threading.Event()

    def run(execution):
        for number in range(3):
            # Nothing is sent before both are there.
            assert waits.wait(SECONDS)
            execution.send("y", audio(500))
            log.append(number)

    lane = Lane(
        "speak",
        Stage(run),
        2,
        bench.outbox,
        lambda *_: ended.release(),
        lambda: None,
        Turns(OUTPUT, PER_SECOND),
    )
    executions = [
        LaneExecution(
            number,
            ORDER,
            deadline=None,
            credits={"y": Credit(WINDOW_ITEMS, WINDOW_BYTES)},
            outbox=bench.outbox,
            acknowledge=lambda *_: None,
        )
        for number in range(3)
    ]
    for execution in executions:
        lane.put(execution)
    # One runs, one has a thread, and one waits in the queue.
    executions[2].cancel()
    assert lane.withdraw(executions[2])
    waits.set()
    for _ in range(2):
        assert await asyncio.to_thread(ended.acquire, timeout=SECONDS)
    await asyncio.to_thread(lane.close)

    assert sorted(log) == [0, 0, 1, 1, 2, 2]
    assert log[:2] in ([0, 0], [0, 1])
    assert not any(slot.is_busy for slot in lane.slots)
    assert len(set(lane.thread_ids)) == 2


async def test_a_cancel_on_the_lane_ends_the_wait_for_a_turn(bench):
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Semaphore(0)

    def hold(_):
        begun.set()
        assert may_end.wait(SECONDS)

    lane = Lane(
        "speak",
        Stage(hold),
        2,
        bench.outbox,
        lambda *_: ended.release(),
        lambda: None,
        Turns(OUTPUT, PER_SECOND),
    )
    first, second = (
        LaneExecution(
            number,
            ORDER,
            deadline=None,
            credits={},
            outbox=bench.outbox,
            acknowledge=lambda *_: None,
        )
        for number in range(2)
    )
    lane.put(first)
    assert await asyncio.to_thread(begun.wait, SECONDS)
    lane.put(second)
    second.cancel()
    is_withdrawn = lane.withdraw(second)

    # The first one still has the turn.
    assert is_withdrawn or await asyncio.to_thread(ended.acquire, timeout=SECONDS)
    may_end.set()
    await asyncio.to_thread(lane.close)
