from pathlib import Path

import pytest

from coordinator.plan.loading import load_plan
from coordinator.plan.schema import ExampleInputSpec, ExampleSpec, ExpectationSpec

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
PLANS = sorted((ROOT / "plans").glob("*.yaml"))
OUTPUTS = "    outputs: {answer: answer.text}\n"


def example(text):
    """A change of the small plan that gives its pipeline one example."""
    return OUTPUTS, f"{OUTPUTS}    examples:\n      - {text}\n"


def test_an_example_names_what_is_sent_and_what_must_come_out(small):
    rules = "{answer: {contains: [yes], min_items: 2}}"
    text = f"{{inputs: {{audio: {{file: samples/a.wav}}}}, expect: {rules}}}"

    loaded = small.load(example(text))

    assert loaded.plan.pipelines["main"].examples == (
        ExampleSpec(
            inputs={"audio": ExampleInputSpec(file="samples/a.wav")},
            expect={"answer": ExpectationSpec(contains=("yes",), min_items=2)},
        ),
    )


def test_a_plan_needs_no_examples(small):
    assert small.load().plan.pipelines["main"].examples == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{inputs: {sound: {text: x}}}", "sound: is no input of the pipeline; "),
        (
            "{expect: {anser: {min_items: 1}}}",
            'anser: is no output of the pipeline; did you mean "answer"?',
        ),
        ("{inputs: {audio: {}}}", "audio: needs file, text or number; write exactly one of them"),
        ("{inputs: {audio: {text: x, number: 1}}}", "needs file, text or number; write exactly"),
        ("{inputs: {audio: {file: ../a.wav}}}", "audio.file: '../a.wav' "),
        ("{inputs: {audio: {file: /etc/passwd}}}", "audio.file: '/etc/passwd' "),
        ("{expect: {answer: {}}}", "answer: asks for nothing; write a rule such as min_items: 1"),
        (
            "{expect: {answer: {min_items: 2, max_items: 1}}}",
            "answer: has min_items above max_items; lower one of them",
        ),
        ("{expect: {answer: {min: 2, max: 1}}}", "answer: has min above max; lower one of them"),
        ("{expect: {answer: {contains: yes}}}", "contains: must be a list, not 'yes'"),
        ("{expect: {answer: {min_item: 2}}}", 'is not a known field; did you mean "min_items"?'),
        ("{expect: {answer: {min_items: -1}}}", "-1 is too small; write 0 or more"),
    ],
)
def test_an_example_that_cannot_be_is_refused_where_it_stands(small, text, says):
    [line] = small.problems(example(text))

    assert says in line
    assert line.startswith("small.yaml:40:")
    assert ": pipelines.main.examples[0]" in line


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.name)
def test_every_pipeline_of_our_plans_has_an_example_that_is_judged(path):
    for name, pipeline in load_plan(path).plan.pipelines.items():
        assert pipeline.examples, name
        for it in pipeline.examples:
            assert it.expect
            files = [value.file for value in it.inputs.values() if value.file]
            assert all((ROOT / file).is_file() for file in files)
