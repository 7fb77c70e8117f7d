"""The life of one worker, with processes that end when this test says so."""

import asyncio
import gc

import pytest

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.supervise.life import WorkerPhase
from coordinator.supervise.policy import Breaker, RestartLimits
from coordinator.supervise.runner import WorkerRunner
from stagewire.errors import (
    CapabilityMissingError,
    EnvironmentBrokenError,
    LoadFailedError,
    StartDeadlineError,
    WorkerLostError,
    WorkerStartError,
    WorkerStuckError,
)
from testkit.waiting import until

pytestmark = pytest.mark.unit


class Process:
    """A process that ends when it is told to, or not."""

    def __init__(self, life, incarnation):
        self.life, self.incarnation = life, incarnation
        self.ended = asyncio.Event()
        self.obeys = True
        self.pid = 4711

    async def wait(self):
        await self.ended.wait()
        return "exit code 0"

    async def aclose(self):
        if self.obeys:
            self.ended.set()
        await self.ended.wait()
        self.life.note("closed", self.incarnation)


class Life:
    """Notes what the runner does, and fails where a test says so."""

    def __init__(self):
        self.notes, self.processes = [], []
        self.start_error = self.up_error = None
        self.may_come_up = asyncio.Event()
        self.may_come_up.set()
        self.hung = asyncio.Event()
        self.damages, self.mend_error = 0, None
        self.may_be_mended = asyncio.Event()
        self.may_be_mended.set()

    def note(self, what, incarnation):
        self.notes.append((what, int(incarnation)))

    async def start(self, incarnation):
        self.note("start", incarnation)
        if self.start_error is not None:
            raise self.start_error
        self.processes.append(Process(self, incarnation))
        return self.processes[-1]

    async def bring_up(self, incarnation):
        await self.may_come_up.wait()
        if self.up_error is not None:
            raise self.up_error

    def awaited(self):
        return "stage 'one' (loading)"

    async def mend(self):
        self.notes.append(("mend",))
        await self.may_be_mended.wait()
        if self.mend_error is not None:
            raise self.mend_error
        if self.damages == 0:
            return False
        self.damages, self.up_error = self.damages - 1, None
        return True

    async def watch(self, incarnation):
        await self.hung.wait()
        self.hung.clear()
        return "no heartbeat"

    def lose(self, incarnation, reason):
        self.note(f"lose {reason.reason}", incarnation)

    def settle(self, incarnation):
        self.note("settle", incarnation)


@pytest.fixture
async def bench():
    benches = []

    def make(**options):
        life = Life()
        numbers = iter(range(1, 1000))
        runner = WorkerRunner(
            WorkerId("a"),
            life,
            start_deadline_seconds=options.pop("start_deadline", 60.0),
            limits=RestartLimits(**{"first_delay_seconds": 0.0} | options),
            changed=lambda: None,
            next_incarnation=lambda: Incarnation(next(numbers)),
        )
        benches.append((life, runner, asyncio.create_task(runner.run())))
        return life, runner

    yield make
    for life, runner, task in benches:
        runner.stop()
        for process in life.processes:
            process.ended.set()
        await task
        runner.first_outcome.cancel()


async def test_a_loss_is_told_at_once_and_settled_when_the_process_is_gone(bench):
    life, runner = bench()
    await runner.first_outcome
    [process] = life.processes
    process.obeys = False
    life.hung.set()
    await until(lambda: ("lose WORKER_HUNG", 1) in life.notes)

    assert ("settle", 1) not in life.notes
    assert len(life.processes) == 1
    process.ended.set()
    await until(lambda: len(life.processes) == 2)

    assert life.notes == [
        ("start", 1),
        ("lose WORKER_HUNG", 1),
        ("closed", 1),
        ("settle", 1),
        ("start", 2),
    ]


async def test_an_end_of_the_process_is_a_loss(bench):
    life, runner = bench()
    await runner.first_outcome

    life.processes[0].ended.set()
    await until(lambda: len(life.processes) == 2)

    assert ("lose WORKER_LOST", 1) in life.notes
    assert runner.last_error.reason == "WORKER_LOST"
    assert runner.restarts == 1


async def test_a_worker_that_is_not_up_in_time_is_ended(bench):
    life, runner = bench(start_deadline=0.01)
    life.may_come_up.clear()

    with pytest.raises(StartDeadlineError, match="waited for stage 'one'") as caught:
        await runner.first_outcome
    assert caught.value.facts == {"worker": "a", "awaited": "stage 'one' (loading)"}
    await until(lambda: ("closed", 1) in life.notes)
    life.may_come_up.set()


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (LoadFailedError("an accident"), WorkerPhase.READY),
        (CapabilityMissingError("a refusal"), WorkerPhase.FAILED),
    ],
)
async def test_an_accident_is_tried_again_and_a_refusal_is_not(bench, error, phase):
    life, runner = bench()
    life.up_error = error

    with pytest.raises(type(error)):
        await runner.first_outcome
    life.up_error = None
    await until(lambda: runner.phase is phase)

    if phase is WorkerPhase.FAILED:
        assert "CAPABILITY_MISSING" in runner.refusal().message
        assert "a refusal" not in runner.refusal().message
        runner.start_again()
        await until(lambda: runner.phase is WorkerPhase.READY)


async def test_a_process_that_cannot_be_started_holds_nothing(bench):
    life, runner = bench(intensity=1)
    life.start_error = WorkerStartError("no such file")

    with pytest.raises(WorkerStartError):
        await runner.first_outcome
    await until(lambda: runner.phase is WorkerPhase.FAILED)

    mended = ("mend",)
    assert life.notes == [("start", 1), ("settle", 1), mended, ("start", 2), ("settle", 2), mended]


async def test_a_link_that_ends_during_the_start_is_explained_by_the_exit(bench):
    life, runner = bench()
    life.may_come_up.clear()
    life.up_error = WorkerLostError("Attach ended")
    await until(lambda: life.processes)
    life.processes[0].ended.set()
    life.may_come_up.set()

    with pytest.raises(WorkerStartError, match="exit code 0"):
        await runner.first_outcome
    life.up_error = None


async def test_nobody_waits_for_ever_for_a_runner_that_broke(bench, caplog):
    life, runner = bench()
    life.start_error = RuntimeError("a fault of our own")

    with pytest.raises(Exception, match="could not be supervised"):
        await runner.first_outcome

    # Tried again like any other loss, and not beyond what the policy allows.
    await until(lambda: runner.phase is WorkerPhase.FAILED)
    life.start_error = None
    runner.start_again()
    await until(lambda: runner.phase is WorkerPhase.READY)
    assert "a fault of our own" in caplog.text


async def test_a_cancel_ends_the_process_and_gives_everything_back(bench):
    life, runner = bench()
    await runner.first_outcome
    again = asyncio.create_task(runner.run())
    await until(lambda: len(life.processes) == 2)

    again.cancel()
    await asyncio.wait([again])

    assert life.notes[-3:] == [("lose SHUTTING_DOWN", 2), ("closed", 2), ("settle", 2)]


async def test_a_process_that_does_not_end_is_said_and_holds_its_memory_until_it_does(
    bench, error_log
):
    life, runner = bench(end_seconds=0.02)
    await runner.first_outcome
    [process] = life.processes
    process.obeys = False
    life.hung.set()

    await until(lambda: runner.phase is WorkerPhase.FAILED)

    assert runner.stuck.reason == runner.last_error.reason == "WORKER_STUCK"
    assert "process 4711 of worker 'a' did not end" in runner.stuck.message
    assert "4711" not in runner.refusal().message
    assert error_log.pop().endswith("process did not end worker=a pid=4711")
    runner.start_again()
    assert life.notes == [("start", 1), ("lose WORKER_HUNG", 1)]
    process.ended.set()
    await until(lambda: runner.phase is WorkerPhase.READY)
    assert life.notes[2:] == [("closed", 1), ("settle", 1), ("start", 2)]
    assert runner.stuck is None


async def test_a_first_start_whose_process_does_not_end_fails_all_the_same(bench, error_log):
    life, runner = bench(end_seconds=0.02, start_deadline=0.02)
    life.may_come_up.clear()
    await until(lambda: life.processes)
    life.processes[0].obeys = False

    with pytest.raises(WorkerStuckError):
        await runner.first_outcome

    life.may_come_up.set()
    error_log.clear()


@pytest.mark.parametrize("when", ["while it runs", "while it is ended", "after the limit"])
async def test_a_stop_does_not_wait_for_a_process_that_does_not_end(error_log, when):
    life = Life()
    runner = WorkerRunner(
        WorkerId("a"),
        life,
        start_deadline_seconds=60,
        limits=RestartLimits(end_seconds=0.1),
        changed=lambda: None,
        next_incarnation=lambda: Incarnation(1),
    )
    running = asyncio.create_task(runner.run())
    await runner.first_outcome
    life.processes[0].obeys = False
    if when != "while it runs":
        life.hung.set()
        await until(lambda: ("lose WORKER_HUNG", 1) in life.notes)
    if when == "after the limit":
        await until(lambda: runner.stuck)

    runner.stop()
    if when != "after the limit":
        running.cancel()
    await asyncio.wait([running])

    assert "process 4711" in runner.stuck.message
    assert "settle" not in {what for what, _ in life.notes}
    error_log.clear()


# --- the breaker ---


async def open_breaker(bench, **limits):
    """Returns a worker whose breaker has opened, because it does not come up."""
    life, runner = bench(intensity=0, **limits)
    life.up_error = LoadFailedError("an accident")
    with pytest.raises(LoadFailedError):
        await runner.first_outcome
    return life, runner


async def test_a_worker_is_started_on_trial_after_its_cooldown(bench):
    life, runner = await open_breaker(bench, cooldown_seconds=0.01, calm_seconds=0.0)
    life.up_error = None

    await until(lambda: runner.phase is WorkerPhase.READY)

    assert life.notes.count(("start", 2)) == 1
    # Calm at once, as these limits have it.
    assert (runner.breaker, runner.is_given_up) == (Breaker.CLOSED, False)
    assert runner.prospect == ""
    assert runner.restarts == 1


async def test_a_worker_on_trial_takes_requests_when_it_is_ready_and_not_before(bench):
    life, runner = await open_breaker(bench, cooldown_seconds=0.01, calm_seconds=600)
    life.may_come_up.clear()
    await until(lambda: runner.phase is WorkerPhase.STARTING)
    assert (runner.breaker, runner.is_given_up) == (Breaker.HALF_OPEN, True)
    assert runner.refusal().reason == "STAGE_FAILED"
    assert runner.prospect == "started on trial after it was given up"
    life.up_error = None

    life.may_come_up.set()

    await until(lambda: runner.phase is WorkerPhase.READY)
    assert (runner.breaker, runner.is_given_up) == (Breaker.HALF_OPEN, False)
    assert runner.prospect == "on trial: given up again if lost within 600 s"


async def test_a_trial_that_is_lost_waits_for_the_next_cooldown(bench):
    life, runner = await open_breaker(bench, cooldown_seconds=0.01)

    await until(lambda: life.notes.count(("lose LOAD_FAILED", 3)))
    await until(lambda: runner.phase is WorkerPhase.FAILED)

    assert "on trial; tried once more after 0.01 s" in runner.prospect


async def test_a_person_need_not_wait_for_the_cooldown(bench):
    life, runner = await open_breaker(bench, cooldown_seconds=600)
    await until(lambda: runner.phase is WorkerPhase.FAILED)
    assert runner.breaker is Breaker.OPEN
    assert runner.prospect.startswith("lost 1 times in 60 s; tried once more after 600 s; read ")
    life.up_error = None

    runner.start_again()

    await until(lambda: runner.phase is WorkerPhase.READY)
    assert runner.breaker is Breaker.CLOSED


# --- damage ---


@pytest.mark.parametrize("error", [WorkerStartError("it ended"), EnvironmentBrokenError("no lib")])
async def test_a_start_that_failed_by_damage_is_made_again_at_once(bench, error):
    life, runner = bench(first_delay_seconds=600.0)
    life.damages, life.up_error = 1, error

    await runner.first_outcome

    assert (runner.restarts, runner.last_error, runner.phase) == (1, error, WorkerPhase.READY)
    assert [note for note in life.notes if note[0] in ("start", "mend")] == [
        ("start", 1),
        ("mend",),
        ("start", 2),
    ]


async def test_a_later_start_is_mended_like_the_first(bench):
    life, runner = bench()
    await runner.first_outcome
    life.damages, life.up_error = 1, WorkerStartError("it ended")
    life.processes[0].ended.set()

    await until(lambda: len(life.processes) == 3 and runner.phase is WorkerPhase.READY)

    assert [note for note in life.notes if note[0] in ("start", "mend")] == [
        ("start", 1),
        ("start", 2),
        ("mend",),
        ("start", 3),
    ]


async def test_damage_that_cannot_be_mended_is_the_reason(bench):
    life, runner = bench()
    life.up_error = WorkerStartError("it ended")
    life.mend_error = EnvironmentBrokenError("a library of the machine is missing")

    with pytest.raises(EnvironmentBrokenError):
        await runner.first_outcome

    await until(lambda: runner.phase is WorkerPhase.FAILED)
    assert runner.prospect.startswith("refused; read ")


async def test_a_loss_that_is_no_failed_start_mends_nothing(bench):
    life, runner = bench()
    await runner.first_outcome
    life.processes[0].ended.set()

    await until(lambda: len(life.processes) == 2 and runner.phase is WorkerPhase.READY)

    assert ("mend",) not in life.notes


async def test_a_stop_does_not_wait_for_a_mend(bench):
    life, runner = bench()
    life.may_be_mended.clear()
    life.up_error = WorkerStartError("it ended")
    await until(lambda: ("mend",) in life.notes)

    runner.stop()

    await until(lambda: runner.phase is WorkerPhase.STOPPED)
    assert not runner.first_outcome.done()


async def fail_alone():
    life = Life()
    life.start_error = WorkerStartError("the worker did not start")
    runner = WorkerRunner(
        WorkerId("a"),
        life,
        start_deadline_seconds=60,
        limits=RestartLimits(intensity=0),
        changed=lambda: None,
        next_incarnation=lambda: Incarnation(1),
    )
    running = asyncio.create_task(runner.run())
    await until(lambda: runner.phase is WorkerPhase.FAILED)
    runner.stop()
    await running


async def test_a_first_failure_that_nobody_waits_for_any_more_is_no_fault(error_log):
    await fail_alone()

    # What was never asked for is told when it is collected.
    gc.collect()
    assert error_log == []
