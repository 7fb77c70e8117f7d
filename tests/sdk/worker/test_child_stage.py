"""Stages in a child, as processes: whatever happens to a child is one failure and no more."""

import contextlib
import logging
import os
import signal
import sys
import threading

import numpy as np
import psutil
import pytest

from stagewire.errors import LoadFailedError, OutputContractError, StageError
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.worker import child_run
from stagewire.worker.affinity import kept_to, make_affinity
from stagewire.worker.child_process import living_children
from stagewire.worker.child_stage import load_in_child
from stagewire.worker.executor import ExecutionEnded, StageOrder
from stagewire.worker.local_execution import LocalExecution
from stagewire.worker.memory import make_meter
from testkit.waiting import until_sync

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

FLOATS = (Dimension("n", 8_000_000),)
ORDER = StageOrder(
    "one",
    "fake",
    "cpu",
    inputs=(Port("x", DataType.FLOAT32, FLOATS, True),),
    outputs=(Port("y", DataType.FLOAT32, FLOATS, True),),
)
ITEM = np.arange(4, dtype=np.float32)
FAKE = "stagewire.worker.fake:load_fake"
SECONDS = 60
GARBAGE = """
import signal
from stagewire.worker.child_process_linux import take_connection
from stagewire.worker.child_wire import ChildWire, Kind
connection = take_connection()
wire = ChildWire(connection)
wire.receive()
wire.send(Kind.LOADED, header=b"{}")
wire.receive()
connection.send({sent})
signal.pause()
"""


def order(*script, **changes):
    fields = {name: getattr(ORDER, name) for name in StageOrder.__slots__}
    return StageOrder(**fields | {"options": {"script": list(script)}} | changes)


@contextlib.contextmanager
def loaded(*script, target=FAKE, phases=None, command=None, **changes):
    given = {} if command is None else {"command": command}
    note = (lambda _: None) if phases is None else phases.append
    stage = load_in_child(target, order(*script, **changes), note, **given)
    try:
        yield stage
    finally:
        stage.release()


class Run:
    """A run on a thread of its own, as on a lane."""

    def __init__(self, stage, *values, ends=True, deadline=SECONDS, order=ORDER, **limits):
        self.execution = LocalExecution(order, deadline_seconds=deadline, **limits)
        for value in values:
            self.execution.feed("x", value)
        if ends:
            self.execution.end()
        self.error = None
        self._stage = stage
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self):
        try:
            self.execution.run(self._stage)
        except BaseException as error:
            self.error = error

    def wait(self):
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self

    def failure(self):
        assert isinstance(self.wait().error, StageError), self.error
        return self.error

    def outputs(self):
        assert self.wait().error is None, self.error
        return [value.tolist() for value in self.execution.outputs["y"]]


def child():
    [pid] = living_children()
    return psutil.Process(pid)


def serves(stage):
    return Run(stage, ITEM).outputs() == [ITEM.tolist()]


# --- it is a stage like any other ---


def test_what_the_child_does_while_it_loads_is_told_and_so_are_its_threads():
    phases = []
    with loaded(phases=phases, thread_count=2) as stage:
        settings = stage.thread_settings
        assert phases == ["starting a process", "pretending"]
        assert settings["process"] == "child"
        assert settings["child.OMP_NUM_THREADS"] == "2"
        assert settings["child.cores"]
        assert str(child().pid) not in settings.values()


def test_a_child_is_a_process_of_the_workers_group_with_an_empty_standard_input():
    with loaded():
        it = child()
        assert it.ppid() == os.getpid()
        assert os.getpgid(it.pid) == os.getpgrp()
        assert it.cmdline()[1:] == ["-I", "-X", "faulthandler", "-m", "stagewire.worker.child"]
        assert os.readlink(f"/proc/{it.pid}/fd/0") == "/dev/null"


def test_a_child_runs_on_the_cores_of_its_stage_and_so_does_the_next_one(error_log):
    core = min(os.sched_getaffinity(0))
    with kept_to(make_affinity(), [core], "one"):
        it = loaded()
        stage = it.__enter__()
    try:
        assert stage.thread_settings["child.cores"] == str(core)
        before = child()
        before.kill()
        until_sync(lambda: not before.is_running() and living_children())
        assert serves(stage)
        assert os.sched_getaffinity(child().pid) == {core}
    finally:
        it.__exit__(None, None, None)
    error_log.clear()


def test_large_items_and_many_items_pass_through():
    large = np.arange(2_000_000, dtype=np.float32)
    with loaded() as stage:
        run = Run(stage, large, *[ITEM] * 200, large)
        assert len(run.wait().execution.outputs["y"]) == 202
        assert np.array_equal(run.execution.outputs["y"][-1], large)


def test_several_executions_run_at_once():
    with loaded(concurrency=2) as stage:
        first, second = (Run(stage, ITEM, ends=False, order=order(concurrency=2)) for _ in "12")
        for run in (first, second):
            assert run.execution.take("y", SECONDS) is not None
        for run in (first, second):
            run.execution.end()
            assert run.outputs() == [ITEM.tolist()]


# --- what a function does wrong ---


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ({"do": "refuse"}, "STAGE_FAULT"),
        ({"do": "raise"}, "STAGE_FAULT"),
        ({"do": "leak", "size_bytes": 1 << 40}, "STAGE_FAULT"),
    ],
    ids=["a failure of its own", "an exception of a library", "memory that is not there"],
)
def test_what_a_function_raises_fails_one_execution_and_its_text_stays_inside(
    script, reason, capfd
):
    with loaded({**script, "value": 1.0}) as stage:
        pid = child().pid
        failure = Run(stage, np.ones(2, np.float32)).failure()
        assert failure.reason == reason
        assert "secret" not in failure.message
        assert serves(stage)
        assert child().pid == pid
    said = capfd.readouterr().err
    if script["do"] == "raise":
        assert failure.facts["error_id"] in said
        assert "/somewhere/secret.py" in said


def test_memory_beyond_twice_the_budget_is_refused_to_the_function_and_to_nobody_else():
    with loaded({"do": "leak", "size_bytes": 1 << 30, "value": 1.0}, budget_bytes=1 << 20) as stage:
        failure = Run(stage, np.ones(2, np.float32)).failure()
        assert "ran out of memory" in failure.message
        assert serves(stage)


def test_an_output_of_the_wrong_form_fails_the_run_and_the_next_one_works():
    with loaded({"do": "wrong_type", "value": 1.0}) as stage:
        assert isinstance(Run(stage, np.ones(2, np.float32)).failure(), OutputContractError)
        assert serves(stage)


def test_a_function_that_fills_its_output_is_held_back_by_credit():
    with loaded() as stage:
        run = Run(stage, *[ITEM] * 100, credit=2)
        until_sync(lambda: len(run.execution.outputs["y"]) == 2)
        run.execution.grant(98)
        assert len(run.outputs()) == 100


def test_a_megabyte_on_standard_error_does_no_harm(capfd):
    with loaded({"do": "flood", "size_bytes": 8 << 20}) as stage:
        assert serves(stage)
    assert len(capfd.readouterr().err) >= 8 << 20


# --- a child that ends ---


@pytest.mark.parametrize(
    ("do", "how"),
    [("crash", "signal 9"), ("segfault", "signal 11"), ("exit", "exit code 0")],
)
def test_the_end_of_a_child_fails_what_it_held_and_it_is_started_again(do, how, caplog, error_log):
    with loaded({"do": do, "value": 1.0}) as stage:
        before = child().pid
        failure = Run(stage, np.ones(2, np.float32)).failure()
        assert failure.reason == "STAGE_LOST"
        assert how in failure.message
        assert str(before) not in failure.message
        assert serves(stage)
        assert child().pid != before
    assert how in caplog.text
    error_log.clear()


def test_an_execution_that_waits_for_input_is_told_when_its_child_ends(error_log):
    with loaded() as stage:
        run = Run(stage, ITEM, ends=False)
        assert run.execution.take("y", SECONDS) is not None
        child().kill()
        assert run.failure().reason == "STAGE_LOST"
        assert serves(stage)
    error_log.clear()


def test_a_child_that_ends_between_two_executions_harms_neither(error_log):
    with loaded() as stage:
        assert serves(stage)
        before = child()
        before.kill()
        until_sync(lambda: not before.is_running() and living_children())
        assert serves(stage)
    error_log.clear()


def test_a_child_that_ends_again_and_again_is_started_five_times_a_minute(error_log):
    with loaded({"do": "crash", "value": 1.0}) as stage:
        failures = [Run(stage, np.ones(2, np.float32)).failure() for _ in range(6)]
        assert [it.reason for it in failures] == ["STAGE_LOST"] * 5 + ["STAGE_FAILED"]
        assert 0 < failures[-1].retry_delay_ms <= 60_000
        assert not living_children()
    error_log.clear()


@pytest.mark.parametrize(
    "sent",
    ["b'x' * 1000", "b'\\x53\\x57\\x10' + bytes(5) + b'\\x02' + bytes(11) + b'??'"],
    ids=["noise", "an item that is none"],
)
def test_a_child_that_sends_what_is_no_frame_is_ended(sent, error_log):
    code = GARBAGE.replace("{sent}", sent)
    if "10" in sent:
        # Execution 1, an item whose header cannot be parsed.
        code = GARBAGE.replace("connection.send({sent})", 'wire.send(Kind.ITEM, 1, b"\\xff\\xff")')
    with loaded(command=[sys.executable, "-I", "-c", code]) as stage:
        before = child().pid
        assert Run(stage, ITEM).failure().reason == "STAGE_LOST"
        until_sync(lambda: living_children() - {before})
    error_log.clear()


# --- a child that hangs ---


@pytest.mark.parametrize("do", ["hang", "hang_gil"])
def test_a_child_without_a_step_is_ended_after_the_hang_timeout(do, error_log):
    with loaded({"do": do, "seconds": 600, "value": 1.0}, hang_timeout_seconds=2.0) as stage:
        failure = Run(stage, np.ones(2, np.float32)).failure()
        assert failure.reason == "STAGE_HUNG"
        assert serves(stage)
    error_log.clear()


def test_a_stopped_child_is_ended_after_the_hang_timeout(error_log):
    with loaded(hang_timeout_seconds=2.0) as stage:
        child().send_signal(signal.SIGSTOP)
        assert Run(stage, ITEM).failure().reason == "STAGE_HUNG"
        assert serves(stage)
    error_log.clear()


def test_a_stopped_child_that_is_sent_more_than_a_buffer_is_ended_too(error_log):
    with loaded(hang_timeout_seconds=2.0) as stage:
        run = Run(stage, ITEM, ends=False)
        assert run.execution.take("y", SECONDS) is not None
        child().send_signal(signal.SIGSTOP)
        run.execution.feed("x", np.zeros(4_000_000, np.float32))
        assert run.failure().reason == "STAGE_HUNG"
        assert serves(stage)
    error_log.clear()


def test_waiting_for_input_is_no_hang():
    with loaded(hang_timeout_seconds=0.5) as stage:
        run = Run(stage, ITEM, ends=False)
        assert run.execution.take("y", SECONDS) is not None
        # Three times the limit goes by while another execution waits in vain for a step of its own.
        with loaded(
            {"do": "hang", "seconds": 600}, hang_timeout_seconds=1.5, stage_id="two"
        ) as other:
            assert Run(other, ITEM).failure().reason == "STAGE_HUNG"
        run.execution.end()
        assert run.outputs() == [ITEM.tolist()]


@pytest.mark.parametrize("do", ["hang", "hang_gil"])
@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_a_function_that_does_not_notice_its_end_is_ended_with_its_child(
    do, how, monkeypatch, capfd, error_log
):
    monkeypatch.setattr(child_run, "CANCEL_SECONDS", 0.5)
    word = {"do": "flood", "size_bytes": 1, "value": 1.0}
    with loaded(word, {"do": do, "seconds": 600, "value": 1.0}) as stage:
        before = child().pid
        deadline = 2.0 if how == "deadline" else SECONDS
        run = Run(stage, np.ones(2, np.float32), deadline=deadline)
        until_sync(lambda: capfd.readouterr().err)
        if how == "cancel":
            run.execution.cancel()
        assert isinstance(run.wait().error, ExecutionEnded)
        assert serves(stage)
        assert child().pid != before
    error_log.clear()


def test_a_cancelled_function_that_steps_keeps_its_child():
    with loaded() as stage:
        before = child().pid
        run = Run(stage, *[ITEM] * 10, credit=1)
        assert run.execution.take("y", SECONDS) is not None
        run.execution.cancel()
        assert isinstance(run.wait().error, ExecutionEnded)
        assert serves(stage)
        assert child().pid == before


def test_a_child_that_does_not_leave_is_ended_with_its_stage():
    with loaded() as _:
        child().send_signal(signal.SIGSTOP)
    assert not living_children()


# --- a child that does not come up ---


@pytest.mark.parametrize(
    ("target", "script"),
    [
        ("no_such_module_of_ours:load", ()),
        ("stagewire.worker.fake:no_such_function", ()),
        (FAKE, ({"do": "raise", "on": "load"},)),
    ],
    ids=["import", "name", "load"],
)
def test_a_load_that_raises_is_told_by_an_error_id_and_nothing_stays(target, script, capfd):
    with pytest.raises(LoadFailedError) as caught, loaded(*script, target=target):
        pass
    assert caught.value.facts["error_id"] in capfd.readouterr().err
    assert "secret" not in caught.value.message
    assert not living_children()


def test_a_load_that_refuses_says_why():
    with pytest.raises(LoadFailedError) as caught, loaded({"do": "refuse", "on": "load"}):
        pass
    assert "refuses to be loaded" in caught.value.message


@pytest.mark.parametrize(("do", "how"), [("crash", "signal 9"), ("exit", "exit code 0")])
def test_a_child_that_ends_while_it_loads_is_a_failed_load(do, how):
    with pytest.raises(LoadFailedError) as caught, loaded({"do": do, "on": "load"}):
        pass
    assert how in caught.value.message


def test_a_command_that_does_not_exist_is_a_failed_load():
    with pytest.raises(LoadFailedError) as caught, loaded(command=["/no/such/python"]):
        pass
    assert "/no/such" not in caught.value.message


# --- memory ---


def test_a_child_counts_with_its_worker_and_leaves_nothing_behind():
    meter = make_meter()
    before = meter.measure(frozenset()).anonymous_pss_bytes
    with loaded({"do": "leak", "size_bytes": 64 << 20, "value": 1.0}) as stage:
        with_child = meter.measure(frozenset()).anonymous_pss_bytes
        assert 8 << 20 < with_child - before < 64 << 20
        assert len(Run(stage, np.ones(2, np.float32)).outputs()) == 1
        assert meter.measure(frozenset()).anonymous_pss_bytes - with_child > 60 << 20
    assert meter.measure(frozenset()).anonymous_pss_bytes - before < 4 << 20


def test_a_child_of_a_worker_says_nothing_but_what_fails(caplog):
    with caplog.at_level(logging.INFO), loaded() as stage:
        assert serves(stage)
    assert not caplog.records
