"""Answers of a real language model: how they stream, stop and end."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from stagewire.errors import FieldInvalidError
from stagewire.worker.conformance import LocalExecution, Trial
from stagewire.worker.sessions import SessionStates
from worker_cpu.llamacpp import LlamacppExecutor

pytestmark = pytest.mark.end_to_end

QUESTION = {"prompt": ["What does a baker do all day?", "Please answer in one sentence."]}


def make_trial(order, **options) -> Trial:
    order = replace(order, options={**order.options, **options})
    return Trial(LlamacppExecutor, order, {}, patience_seconds=600)


@pytest.fixture(scope="module")
def trial(llamacpp_order):
    with make_trial(llamacpp_order, max_tokens=12) as opened:
        yield opened


def test_an_answer_comes_in_many_pieces(trial):
    pieces = trial.complete(QUESTION, "a question")["text"]
    assert len(pieces) > 5
    assert "baker" in "".join(pieces).lower()


def test_no_more_tokens_come_than_allowed(trial):
    assert len(trial.complete(QUESTION, "a question")["text"]) <= 12


def test_nothing_said_is_nothing_answered(trial):
    assert trial.complete({"prompt": ["", "  "]}, "silence")["text"] == []


def test_a_stop_text_ends_the_answer_and_is_not_part_of_it(llamacpp_order):
    with make_trial(llamacpp_order, stop=["baker"]) as trial:
        assert "baker" not in "".join(trial.complete(QUESTION, "a question")["text"])


def test_a_seed_decides_what_is_sampled(llamacpp_order):
    texts = []
    for seed in (1, 1, 2):
        with make_trial(llamacpp_order, temperature=1.5, seed=seed) as trial:
            texts.append("".join(trial.complete(QUESTION, "a question")["text"]))
    assert texts[0] == texts[1] != texts[2]


def test_a_system_prompt_is_heard(llamacpp_order):
    plain, told = (
        make_trial(llamacpp_order, system_prompt=prompt)
        for prompt in ("", "You are a pirate. Say arr.")
    )
    with plain, told:
        assert plain.complete(QUESTION, "plain") != told.complete(QUESTION, "told")


def test_a_prompt_over_the_context_is_refused_with_its_size(llamacpp_order):
    with make_trial(llamacpp_order, context_tokens=128) as trial:
        execution = LocalExecution(trial.order)
        execution.feed_all({"prompt": ["bread " * 400]})
        error = trial.start(execution).wait("a long prompt")
    assert isinstance(error, FieldInvalidError)
    assert "context_tokens" in error.message


def test_a_cancel_ends_a_long_prompt_before_it_is_read(llamacpp_order):
    with make_trial(llamacpp_order) as trial:
        checked = threading.Event()

        class Watched(LocalExecution):
            def check(self) -> None:
                checked.set()
                super().check()

        execution = Watched(trial.order)
        execution.feed_all({"prompt": ["The quick brown fox jumps over the lazy dog. " * 150]})
        run = trial.start(execution)
        assert checked.wait(600)
        execution.cancel()
        run.expect_ended("cancelled while the prompt was read")
        assert execution.outputs["text"] == []


# --- sessions ---


def asked(trial, session, prompt):
    execution = LocalExecution(trial.order, session=session)
    execution.feed_all({"prompt": [prompt]})
    trial.start(execution).expect_return(prompt)
    return "".join(execution.outputs["text"])


@pytest.fixture
def session():
    return SessionStates().of("answer", "s")


def test_a_second_question_of_a_session_knows_the_first(llamacpp_order, session):
    with make_trial(llamacpp_order, max_tokens=30) as trial:
        asked(trial, session, "My cat is called Mimi.")
        assert "Mimi" in asked(trial, session, "What is my cat called?")
        assert "Mimi" not in asked(trial, None, "What is my cat called?")
    assert [turn.prompt for turn in session.state][1] == "What is my cat called?"


def test_a_request_without_a_session_is_answered_as_before(llamacpp_order, session):
    with make_trial(llamacpp_order, max_tokens=12) as trial:
        first = asked(trial, None, "What is bread?")
        assert asked(trial, session, "What is bread?") == first


def test_the_oldest_turns_are_forgotten_when_the_context_is_full(llamacpp_order, session):
    with make_trial(llamacpp_order, max_tokens=16, context_tokens=256) as trial:
        for number in range(8):
            asked(trial, session, f"Question {number}. " + "What is bread made of? " * 6)
    prompts = [turn.prompt for turn in session.state]
    assert 1 < len(prompts) < 8
    assert [prompt[:11] for prompt in prompts] == [
        f"Question {number}." for number in range(8 - len(prompts), 8)
    ]


def test_a_prompt_that_no_context_holds_is_refused_in_a_session_too(llamacpp_order, session):
    with make_trial(llamacpp_order, max_tokens=16, context_tokens=128) as trial:
        asked(trial, session, "What is bread?")
        execution = LocalExecution(trial.order, session=session)
        execution.feed_all({"prompt": ["bread " * 400]})
        error = trial.start(execution).wait("a long prompt")
        assert isinstance(error, FieldInvalidError)
        assert "context_tokens" in error.message
        assert [turn.prompt for turn in session.state] == ["What is bread?"]


def test_an_answer_that_was_cancelled_is_no_turn(llamacpp_order, session):
    with make_trial(llamacpp_order, max_tokens=60) as trial:
        execution = LocalExecution(trial.order, credit=1, session=session)
        execution.feed_all({"prompt": ["Tell me a story."]})
        run = trial.start(execution)
        assert execution.take("text", 600)
        execution.cancel()
        run.expect_ended("cancelled inside the answer")
    assert session.state is None


def test_nobody_can_connect_to_the_library(trial):
    listeners = [
        connection
        for connection in psutil.Process(os.getpid()).net_connections("all")
        if connection.status == psutil.CONN_LISTEN or str(connection.laddr).endswith("s.sock")
    ]
    assert trial.stage is not None
    assert listeners
    assert not [item for item in listeners if item.status == psutil.CONN_LISTEN]
    assert not [item for item in listeners if Path(str(item.laddr)).exists()]


def test_the_answer_is_whole_characters(llamacpp_order):
    with make_trial(llamacpp_order, max_tokens=40) as trial:
        pieces = trial.complete({"prompt": ["Repeat exactly: 😀 日本語 é"]}, "emoji")["text"]
    assert "\ufffd" not in "".join(pieces)
