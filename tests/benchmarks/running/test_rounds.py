import pytest

from benchmarks.judging.declarations import Part, Step
from benchmarks.running.rounds import Conditions, RunStoppedError, take_turns

pytestmark = pytest.mark.integration


@pytest.fixture
def play(tmp_path):
    said = []

    def run(arms, rounds=3, warm_ups=1, *, is_same_work=True, **fields):
        part = Part(
            arms,
            (Step("turn", rounds, warm_ups),),
            **{"timeout_seconds": 60.0, "settle_seconds": 0.0} | fields,
        )
        conditions = Conditions(tmp_path / "arms", said.append, is_same_work=is_same_work)
        return take_turns(part, conditions)

    run.said = said
    return run


def noting(path):
    """Notes each turn in a file that all arms share."""
    return f"open({str(path)!r}, 'a').write(settings['name']); done()"


def test_arms_take_turns_and_the_first_place_goes_round(play, make_arm, tmp_path):
    log = tmp_path / "turns"
    arms = {name: make_arm(noting(log), name=name) for name in ("a", "b", "c")}

    turns = play(arms, rounds=3)

    # One warm-up each, then three rounds.
    assert log.read_text() == "abc" + "abc" + "bca" + "cab"
    assert turns.series == {"time": {name: [1.0, 1.0, 1.0] for name in arms}}
    assert turns.steps == {"time": "turn"}
    assert turns.planned == {"turn": 3}
    assert not turns.failures


def test_every_turn_of_a_fresh_arm_has_a_process_of_its_own(play, make_arm, tmp_path):
    log = tmp_path / "pids"
    arm = make_arm(f"print(os.getpid(), file=open({str(log)!r}, 'a')); done()")

    turns = play({"a": arm}, rounds=2, is_fresh=True)

    # One warm-up and two rounds.
    assert turns.series["time"]["a"] == [1.0, 1.0]
    assert len(set(log.read_text().split())) == 3


COUNTING = """
path = settings["folder"] + "/../count"
count = len(open(path).read()) if os.path.exists(path) else 0
open(path, "a").write("x")
"""


def test_a_failed_round_is_kept_and_the_arm_starts_anew(play, make_arm):
    flaky = make_arm(COUNTING + "sys.exit('tripped') if count == 3 else done()")

    turns = play({"a": flaky, "b": make_arm()}, rounds=10)

    # Turn 0 warms up, turn 3 is round 3; after it another process warms up and goes on.
    assert turns.series["time"]["a"] == [1.0, 1.0, None, *[1.0] * 7]
    assert turns.series["time"]["b"] == [1.0] * 10
    (failure,) = turns.failures
    assert (failure.arm, failure.step, failure.round) == ("a", "turn", 3)
    assert "tripped" in failure.text


def test_a_run_in_which_too_many_rounds_fail_is_given_up(play, make_arm):
    failing = make_arm(COUNTING + "done() if count == 0 else sys.exit('always')")

    turns = play({"a": failing, "b": make_arm()}, rounds=5)

    assert [item.round for item in turns.failures] == [1, 2]
    assert turns.notes == ["given up after round 2 of 5 of turn: too many failed"]
    assert turns.planned == {"turn": 5}


def test_an_arm_that_hangs_in_a_round_fails_that_round(play, make_arm):
    hanging = make_arm(COUNTING + "time.sleep(600) if count == 1 else done()")

    turns = play({"a": hanging}, rounds=6, timeout_seconds=5.0)

    assert turns.series["time"]["a"] == [None, *[1.0] * 5]
    assert "did not answer within 5 s" in turns.failures[0].text


def test_an_arm_that_never_comes_up_stops_the_run(play, make_arm):
    with pytest.raises(RunStoppedError, match="arm b does not come up: it ended with exit code 1"):
        play({"a": make_arm(), "b": make_arm(ready="sys.exit(1)")})


def test_arms_that_do_different_work_stop_the_run(play, make_arm):
    arms = {name: make_arm(f"done(outcome=[{name!r}])") for name in ("a", "b")}

    with pytest.raises(RunStoppedError, match=r"different work: a \['a'\], b \['b'\]"):
        play(arms)


def test_different_work_is_noted_where_it_may_be_what_is_measured(play, make_arm):
    arms = {name: make_arm(f"done(outcome=[{name!r}])") for name in ("a", "b")}

    turns = play(arms, is_same_work=False)

    assert turns.notes == ["the arms do different work: a ['a'], b ['b']"]
    assert not turns.failures


def test_a_round_whose_work_comes_out_differently_has_failed(play, make_arm):
    arm = make_arm(COUNTING + "done(outcome='odd' if count == 2 else 'usual')")

    turns = play({"a": arm}, rounds=6)

    assert turns.series["time"]["a"] == [1.0, None, *[1.0] * 4]
    assert "came out differently: odd, before usual" in turns.failures[0].text


def test_an_arm_that_spins_while_it_should_wait_is_noticed(play, make_arm):
    spin = (
        "import threading\n"
        "threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True).start()"
    )
    arms = {
        "spinning": make_arm(ready=f"{spin}\ntell(event='ready')"),
        # Long enough for the clock of CPU times, which has ticks of 10 ms.
        "waiting": make_arm("time.sleep(0.5); done()"),
    }

    turns = play(arms, rounds=1)

    idle = {item.arm: item.idle for item in turns.disturbances}
    assert idle["waiting"][0] > 0.1
    assert len(idle["spinning"]) == 1
