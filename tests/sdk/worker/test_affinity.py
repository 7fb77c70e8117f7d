"""Cores of a stage: given to the threads of its library and of its lane, and read back."""

import os
import threading

import pytest

from stagewire import ports
from stagewire.errors import LoadFailedError
from stagewire.ports import Port
from stagewire.tensor import DataType
from stagewire.v1 import gateway_pb2 as pb
from stagewire.worker.affinity import attest_cores, kept_to, make_affinity, spell_cores
from stagewire.worker.fake import FakeExecutor
from stagewire.worker.memory import make_meter
from stagewire.worker.stages import Stages

pytestmark = pytest.mark.unit

USABLE = frozenset(os.sched_getaffinity(0))
ONE = frozenset([max(USABLE)])
BEYOND = max(os.sched_getaffinity(0)) + 1_000
SECONDS = 60


class Library(FakeExecutor):
    """Starts a thread of its own while it loads, as native libraries do."""

    def load(self, order, progress):
        self.found = None

        def look():
            self.found = frozenset(os.sched_getaffinity(0))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join(SECONDS)
        return super().load(order, progress)


@pytest.fixture
def library():
    return Library()


@pytest.fixture
def stages(library):
    made = Stages([library], outbox=None, meter=make_meter(), ended=lambda *_: None)
    yield made
    for lane in list(made.lanes.values()):
        made.release(lane.stage_id)


def order(**changes):
    text = ports.to_message(Port("text", DataType.UTF8, (), is_stream=True))
    return pb.LoadStage(
        stage_id="one",
        executor="fake",
        device="cpu",
        inputs=[text],
        outputs=[text],
        concurrency=2,
        **changes,
    )


def loaded(answer: pb.AttachRequest) -> dict[str, str]:
    assert answer.HasField("stage_loaded"), answer.fault.failure.message
    return {item.name: item.value for item in answer.stage_loaded.thread_settings}


def test_a_stage_keeps_to_its_cores_with_every_thread(stages, library):
    settings = loaded(stages.load(order(cores=sorted(ONE)), print))

    assert settings["cores"] == spell_cores(ONE)
    assert "fake" in settings, "what the executor says is still there"
    assert library.found == ONE
    for thread_id in stages.lanes["one"].thread_ids:
        assert os.sched_getaffinity(thread_id) == ONE
    assert os.sched_getaffinity(0) == USABLE, "the loader is for other stages as well"


def test_a_stage_without_cores_runs_anywhere_and_says_where_that_is(stages, library):
    settings = loaded(stages.load(order(), print))

    assert settings["cores"] == spell_cores(USABLE)
    assert library.found == USABLE


def test_a_proof_runs_where_the_stage_will(stages, monkeypatch):
    loaded(stages.load(order(cores=sorted(ONE)), print))
    seen = []
    stage = stages.lanes["one"].stage
    monkeypatch.setattr(
        type(stage), "run", lambda *_: seen.append(frozenset(os.sched_getaffinity(0)))
    )

    assert stages.prove("one").HasField("stage_proved")

    assert seen == [ONE]
    assert os.sched_getaffinity(0) == USABLE


@pytest.mark.parametrize("cores", [[BEYOND], [*USABLE, BEYOND]], ids=["none", "not all"])
def test_cores_that_the_worker_may_not_use_fail_the_load_and_leave_nothing(stages, cores):
    threads = threading.active_count()
    answer = stages.load(order(cores=cores), print)

    assert answer.fault.failure.reason == "LOAD_FAILED"
    assert str(BEYOND) in answer.fault.failure.message
    assert not stages.lanes
    assert threading.active_count() == threads
    assert os.sched_getaffinity(0) == USABLE


def test_a_port_to_be_played_that_the_stage_has_not_fails_the_load(stages):
    answer = stages.load(order(realtime=pb.RealtimePace(port="sound", per_second=10)), print)

    assert answer.fault.failure.reason == "LOAD_FAILED"
    assert "'sound'" in answer.fault.failure.message


def test_an_operating_system_without_affinity_says_what_to_write():
    with pytest.raises(LoadFailedError, match="cores: shared"), kept_to(None, [0], "one"):
        pytest.fail("the block must not run")
    with kept_to(None, [], "one"):
        assert attest_cores(None, [], [0], "one") == {}


def test_what_is_read_back_must_be_what_was_ordered():
    with pytest.raises(LoadFailedError, match="instead of"):
        attest_cores(make_affinity(), [*USABLE, BEYOND], [0], "one")
