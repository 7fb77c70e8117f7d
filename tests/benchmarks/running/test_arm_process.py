import os
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from benchmarks.judging.declarations import ArmSpec
from benchmarks.running.arm_process import Answer, ArmFailedError, ArmProcess

pytestmark = pytest.mark.integration

GENEROUS = 60.0


@pytest.fixture
def start(tmp_path):
    def make(spec, timeout=GENEROUS, watched=()):
        return ArmProcess(spec, tmp_path / "life", timeout, watched)

    return make


def test_an_arm_answers_each_turn_with_its_metrics(start, make_arm):
    with start(make_arm("done(outcome=line.strip())", time=2.5)) as arm:
        assert arm.perform("turn") == Answer({"time": 2.5}, "turn")
        assert arm.perform("other") == Answer({"time": 2.5}, "other")


def test_an_arm_is_told_of_a_folder_that_it_may_write_to(start, make_arm, tmp_path):
    with start(make_arm("done(outcome=settings['folder'])")) as arm:
        assert arm.perform("turn").outcome == str(tmp_path / "life")


def test_an_arm_that_crashes_is_told_with_its_last_words(start, make_arm):
    body = "print('the last words', file=sys.stderr, flush=True)\nos.kill(os.getpid(), 9)"

    with start(make_arm(body)) as arm, pytest.raises(ArmFailedError) as caught:
        arm.perform("turn")

    assert str(caught.value) == "it was ended by SIGKILL\nthe last words"


def test_an_arm_that_ends_by_itself_is_told_with_its_exit_code(start, make_arm):
    with start(make_arm("sys.exit(5)")) as arm, pytest.raises(ArmFailedError, match="exit code 5"):
        arm.perform("turn")


def test_an_arm_that_hangs_is_killed_with_what_it_started(start, make_arm, tmp_path):
    body = f"""
    import subprocess
    child = subprocess.Popen([{sys.executable!r}, "-c", "import time; time.sleep(600)"])
    open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
    time.sleep(600)
    """
    arm = start(make_arm(body), timeout=GENEROUS)
    with arm:
        arm.timeout_seconds = 5.0
        with pytest.raises(ArmFailedError, match="did not answer within 5 s"):
            arm.perform("turn")
        pid = arm.pid
        arm.kill()

    child = int((tmp_path / "child").read_text())
    assert not psutil.pid_exists(pid)
    psutil.wait_procs([process for process in [find(child)] if process], timeout=GENEROUS)
    assert find(child) is None


def find(pid):
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    return None if process.status() == psutil.STATUS_ZOMBIE else process


def test_an_arm_may_say_itself_that_it_failed(start, make_arm):
    spec = make_arm("tell(event='failed', text='the answer was wrong')")

    with start(spec) as arm, pytest.raises(ArmFailedError, match=r"^the answer was wrong$"):
        arm.perform("turn")


@pytest.mark.parametrize(
    "said", ["hello", "[1]", '{"event": "ready"}', '{"event": "done", "metrics": {"time": "x"}}']
)
def test_what_is_no_answer_is_a_failure(start, make_arm, said):
    with start(make_arm(f"print({said!r}, flush=True)")) as arm, pytest.raises(ArmFailedError):
        arm.perform("turn")


def test_an_arm_that_does_not_come_up_leaves_nothing_behind(start, make_arm):
    arm = start(make_arm(ready="sys.exit('no way')"))

    with pytest.raises(ArmFailedError, match="no way"), arm:
        pass

    assert arm.pid == 0


def test_a_command_that_is_not_there_is_an_error(start):
    with (
        pytest.raises(ArmFailedError, match="cannot be started"),
        start(ArmSpec(("/no/such/program",), "none")),
    ):
        pass


def test_a_watched_variable_is_read_from_the_processes_themselves(start, make_arm):
    body = """
    import subprocess
    changed = os.environ | {"KNOB": "changed on the way"}
    code = "print(1, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], env=changed, stdin=-1, stdout=-1)
    child.stdout.readline()
    done(roles={"child": [child.pid], "gone": [2**22 + 1]})
    """
    spec = replace(make_arm(body), variables={"KNOB": "7"})

    with start(spec, watched=("KNOB",)) as arm:
        arm.perform("turn")

        assert arm.seen.variables == {
            "arm": ["7"],
            "child": ["changed on the way"],
            "gone": ["(the process cannot be read)"],
        }


def test_a_variable_can_be_removed(start, make_arm, monkeypatch):
    monkeypatch.setenv("KNOB", "1")

    with start(replace(make_arm(), variables={"KNOB": None}), watched=("KNOB",)) as arm:
        assert arm.seen.variables["arm"] == [None]


def test_an_arm_leaves_when_the_bench_dies(make_arm, tmp_path):
    spec = make_arm()
    code = (
        "import sys; from pathlib import Path\n"
        "from benchmarks.judging.declarations import ArmSpec\n"
        "from benchmarks.running.arm_process import ArmProcess\n"
        f"arm = ArmProcess(ArmSpec({spec.command!r}, 'arm'), Path({str(tmp_path / 'x')!r}), 60.0)\n"
        "arm.__enter__(); print(arm.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as bench:
        pid = int(bench.stdout.readline())
        descriptor = os.pidfd_open(pid)
        bench.kill()

    psutil.wait_procs([process for process in [find(pid)] if process], timeout=GENEROUS)
    os.close(descriptor)
    assert find(pid) is None
