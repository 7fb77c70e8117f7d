"""Cores and pace of a stage, as a plan's author writes them."""

import pytest

pytestmark = pytest.mark.unit

HEAR = "    artifact: tiny\n"
TEXT = "      text: {type: utf8, stream: true}\n  answer"
PLAYED = "      text: {type: utf8, stream: true, per_second: 50}\n  answer"


@pytest.mark.parametrize(
    ("written", "cores"),
    [("auto", "auto"), ("shared", "shared"), ("[3]", (3,)), ("[1, 0]", (1, 0))],
)
def test_cores_are_a_word_or_numbers(small, written, cores):
    plan = small.load((HEAR, f"{HEAR}    cores: {written}\n")).plan

    assert plan.stages["hear"].cores == cores
    assert plan.stages["answer"].cores == "auto"
    assert plan.stages["hear"].model_dump(mode="json")["cores"] in (written, list(cores))


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("none", "is no set of cores"),
        ("[]", "is no set of cores"),
        ("[-1]", "is no set of cores"),
        ("[true]", "is no set of cores"),
        ("[0.5]", "is no set of cores"),
        ("[99999]", "is no set of cores"),
        ("0", "is no set of cores"),
        ("{a: 1}", "is no set of cores"),
        ("[0, 0]", "names a core twice"),
        ("[0]\n    threads: 2", "has 2 threads on 1 cores"),
    ],
)
def test_cores_of_another_form_are_refused(small, written, problem):
    [line] = small.problems((HEAR, f"{HEAR}    cores: {written}\n"))

    assert problem in line
    assert "stages.hear" in line


def test_the_output_that_is_played_is_known_with_its_pace(small):
    plan = small.load((HEAR, f"{HEAR}    pace: realtime\n"), (TEXT, PLAYED)).plan

    assert plan.stages["hear"].played_port == ("text", 50)
    assert plan.stages["answer"].played_port is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ([(TEXT, PLAYED)], "has per_second on text but no pace"),
        ([(HEAR, f"{HEAR}    pace: realtime\n")], "has pace: realtime and 0 outputs"),
        ([(HEAR, f"{HEAR}    pace: fast\n")], "pace"),
        (
            [
                (HEAR, f"{HEAR}    pace: realtime\n"),
                (TEXT, PLAYED.replace("true, per", "false, per")),
            ],
            "plays text, which is no stream",
        ),
        (
            [(HEAR, f"{HEAR}    pace: realtime\n"), (TEXT, PLAYED.replace("50", "0"))],
            "per_second",
        ),
        (
            [('["samples<=100"]}', '["samples<=100"], per_second: 5}')],
            "has an input with per_second",
        ),
    ],
)
def test_a_pace_that_says_too_little_or_too_much_is_refused(small, changes, problem):
    assert any(problem in line for line in small.problems(*changes))
