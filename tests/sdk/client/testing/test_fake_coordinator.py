"""The fake coordinator as the tests of callers use it, with both clients."""

import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import stagewire.client.testing
from stagewire.client import AsyncClient, connect
from stagewire.client.testing import (
    DataType,
    Dimension,
    FakeCoordinator,
    FakePipeline,
    FakeRequest,
    Port,
)
from stagewire.errors import (
    CancelledError,
    DeadlineExceededError,
    FieldInvalidError,
    LaneFullError,
    MessageTooBigError,
    OutputContractError,
    PipelineUnknownError,
    RequestDuplicateError,
    SessionBusyError,
    SessionLostError,
    SessionUnknownError,
    StageFaultError,
    TensorMismatchError,
    TokenInvalidError,
    WorkerLostError,
)
from stagewire.limits import MESSAGE_BYTES, WINDOW_ITEMS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

SECONDS = 60
FLOATS = (Dimension("n", 64),)


def shout(text: str):
    return {"loud": text.upper()}


def spell(words: Iterator[str]):
    for word in words:
        for letter in word:
            yield "letter", letter
        yield "length", len(word)


def remember(text: str, request: FakeRequest):
    seen = {} if request.session is None else request.session
    seen.setdefault("texts", []).append(text)
    return {"said": " ".join(seen["texts"])}


PIPELINES = {
    "shout": shout,
    "spell": spell,
    "remember": remember,
    "scale": FakePipeline(
        lambda x, factor: {"y": [value * int(factor) for value in x]},
        inputs=(Port("x", DataType.FLOAT32, FLOATS, True), Port("factor", DataType.INT32)),
        outputs=(Port("y", DataType.FLOAT32, FLOATS, True),),
    ),
    "anything": lambda x: {"same": x},
    "large": lambda size: {"zeros": np.zeros(int(size), np.uint8)},
}


@pytest.fixture
def fake():
    with FakeCoordinator(PIPELINES) as fake:
        yield fake


@pytest.fixture
def client(make_client, fake):
    with make_client(fake.address, fake.token) as client:
        yield client


def test_a_function_answers_as_a_pipeline(client, fake):
    result = client.run("shout", {"text": "hello"}, timeout=SECONDS)
    assert result.text("loud") == "HELLO"
    assert result.receipt.stages[0].worker_id == "fake"
    [request] = fake.requests
    assert request.pipeline == "shout"
    assert request.inputs == {"text": ["hello"]}
    assert request.request_id == result.receipt.request_id
    assert not request.cancelled.is_set()


def test_a_generator_answers_while_items_come(client):
    with client.infer("spell", timeout=SECONDS) as call:
        call.send("words", "ab")
        got = [next(call) for _ in range(3)]
        call.send("words", "c")
        call.end()
        got += list(call)
    assert [(item.port, item.value) for item in got if item.port == "letter"] == [
        ("letter", "a"),
        ("letter", "b"),
        ("letter", "c"),
    ]
    assert [int(item.value) for item in got if item.port == "length"] == [2, 1]


def test_ports_that_are_named_are_checked_and_type_numbers(client):
    x = np.arange(3, dtype=np.float32)
    with client.infer("scale", {"x": [x, [1, 2]], "factor": 2}, timeout=SECONDS) as call:
        got = [item.value for item in call]
    assert [value.tolist() for value in got] == [[0, 2, 4], [2, 4]]
    assert {value.dtype for value in got} == {np.dtype(np.float32)}
    with pytest.raises(TensorMismatchError, match="float32"):
        client.run("scale", {"x": np.zeros(3), "factor": 2}, timeout=SECONDS)
    with pytest.raises(TensorMismatchError, match="needs one item"):
        client.run("scale", {"x": x}, timeout=SECONDS)
    with pytest.raises(FieldInvalidError, match="has no input 'z'"):
        client.run("scale", {"z": x}, timeout=SECONDS)


def test_an_input_without_annotation_takes_anything(client):
    for value in ("text", b"bytes", np.arange(4).reshape(2, 2)):
        back = client.run("anything", {"x": value}, timeout=SECONDS).output("same")
        assert np.array_equal(back, value)
    assert client.run("anything", {"x": 1.5}, timeout=SECONDS).output("same") == 1.5


def test_the_placement_names_pipelines_and_ports(client):
    state = client.placement(timeout=SECONDS)
    assert [item.pipeline for item in state.pipelines] == list(PIPELINES)
    assert state.pipelines[1].inputs == (Port("words", DataType.UTF8, (), True),)
    assert next(client.watch(timeout=SECONDS)).plan_name == "fake"


def test_large_items_and_many_pass_as_with_a_real_one(client):
    value = np.arange(3 * MESSAGE_BYTES, dtype=np.uint8)
    with client.infer("anything", {"x": value}, timeout=SECONDS) as call:
        assert np.array_equal(next(call).value, value)
    assert client.run("large", {"size": 1000}, timeout=SECONDS).output("zeros").nbytes == 1000
    with pytest.raises(MessageTooBigError, match="`infer`"):
        client.run("large", {"size": MESSAGE_BYTES}, timeout=SECONDS)
    words = ["word"] * (3 * WINDOW_ITEMS)
    with client.infer("spell", {"words": words}, timeout=SECONDS) as call:
        assert sum(item.port == "length" for item in call) == len(words)


def test_only_outputs_that_are_wanted_come(client):
    with client.infer("spell", {"words": ["ab"]}, outputs=["length"], timeout=SECONDS) as call:
        assert [item.port for item in call] == ["length"]


# --- failures ---


def test_a_scripted_failure_comes_as_often_as_said(client, fake):
    fake.fail("shout", "LANE_FULL", times=2)
    for _ in range(2):
        with pytest.raises(LaneFullError):
            client.run("shout", {"text": "a"}, timeout=SECONDS)
    assert client.run("shout", {"text": "a"}, timeout=SECONDS).text("loud") == "A"


def test_a_scripted_failure_may_bring_facts_and_come_later(client, fake):
    error = WorkerLostError("the worker went away", retry_delay_ms=7, worker="cpu")
    fake.fail("spell", error, after_outputs=2)
    with client.infer("spell", {"words": ["abc"]}, timeout=SECONDS) as call:
        assert [next(call).value, next(call).value] == ["a", "b"]
        with pytest.raises(WorkerLostError) as failure:
            next(call)
    assert failure.value.facts == {"worker": "cpu"}
    assert failure.value.retry_delay_ms == 7


def test_an_idempotent_request_is_seen_attempt_by_attempt(client, fake):
    fake.fail("shout", "WORKER_LOST", times=2)
    result = client.run("shout", {"text": "a"}, idempotent=True, timeout=SECONDS)
    assert result.attempts == 3
    assert [request.attempt for request in fake.requests] == [1, 2, 3]
    assert all(request.is_idempotent for request in fake.requests)
    with pytest.raises(RequestDuplicateError):
        client.run("shout", {"text": "a"}, request_id=fake.requests[0].request_id)


def test_what_a_function_raises_is_told(client):
    def fail(text: str):
        raise ZeroDivisionError(text)

    def refuse(text: str):
        raise LaneFullError("full")

    def nothing(text: str):
        return 7

    wrong = FakePipeline(lambda: {"y": "text"}, outputs=(Port("y", DataType.INT8),))
    with FakeCoordinator(
        {"fail": fail, "refuse": refuse, "nothing": nothing, "wrong": wrong}
    ) as fake:
        with pytest.raises(StageFaultError, match="ZeroDivisionError"):
            fake.client.run("fail", {"text": "a"}, timeout=SECONDS)
        with pytest.raises(LaneFullError):
            fake.client.run("refuse", {"text": "a"}, timeout=SECONDS)
        with pytest.raises(StageFaultError, match="mapping"):
            fake.client.run("nothing", {"text": "a"}, timeout=SECONDS)
        with pytest.raises(OutputContractError):
            fake.client.run("wrong", {}, timeout=SECONDS)


def test_what_does_not_exist_is_refused(client, fake):
    with pytest.raises(PipelineUnknownError, match="shout"):
        client.run("nothing", {}, timeout=SECONDS)
    for use in (fake.hold, lambda name: fake.fail(name, "LANE_FULL")):
        with pytest.raises(PipelineUnknownError):
            use("nothing")
    with pytest.raises(FieldInvalidError, match="NO_REASON"):
        fake.fail("shout", "NO_REASON")
    with pytest.raises(FieldInvalidError, match="FakePipeline"):
        FakeCoordinator({"text": "no function"})


def test_another_token_is_refused(make_client, fake):
    with make_client(fake.address, "wrong") as client, pytest.raises(TokenInvalidError):
        client.run("shout", {"text": "a"}, timeout=SECONDS)


# --- time ---


def test_a_hold_keeps_requests_until_it_is_released(client, fake):
    with (
        fake.hold("shout") as hold,
        client.infer("shout", {"text": "a"}, timeout=SECONDS) as call,
    ):
        assert hold.arrived.wait(SECONDS)
        hold.release()
        assert next(call).value == "A"


def test_a_held_request_meets_its_deadline(client, fake):
    with fake.hold("shout"), pytest.raises(DeadlineExceededError):
        client.run("shout", {"text": "a"}, timeout=0.3)
    assert fake.requests[0].cancelled.wait(SECONDS)


def test_a_function_sees_that_its_caller_has_gone(make_client):
    def wait(request: FakeRequest):
        began.set()
        gone.append(request.cancelled.wait(SECONDS))

    began, gone = threading.Event(), []
    with FakeCoordinator({"wait": wait}) as fake, make_client(fake.address, fake.token) as client:
        with client.infer("wait", timeout=SECONDS) as call:
            assert began.wait(SECONDS)
            call.cancel()
            with pytest.raises(CancelledError):
                next(call)
        assert fake.requests[0].cancelled.wait(SECONDS)


def test_a_function_that_waits_for_ever_does_not_keep_the_fake_open():
    gate = threading.Event()
    with (
        FakeCoordinator({"wait": lambda: gate.wait() and None}) as fake,
        pytest.raises(DeadlineExceededError),
    ):
        fake.client.run("wait", {}, timeout=0.3)
    gate.set()


# --- sessions ---


def test_a_session_is_a_dictionary_for_its_function(client):
    def say(asked, text):
        return asked.run({"text": text}, timeout=SECONDS).text("said")

    with client.session("remember", idle_timeout=5) as session:
        assert session.lease_seconds == session.renew() == 5
        assert [say(session, "a"), say(session, "b")] == ["a", "a b"]
    with pytest.raises(SessionUnknownError):
        session.run({"text": "c"}, timeout=SECONDS)
    assert client.run("remember", {"text": "d"}, timeout=SECONDS).text("said") == "d"


def test_sessions_end_as_a_test_says(client, fake):
    with client.session("remember") as session:
        fake.lose_sessions()
        with pytest.raises(SessionLostError):
            session.run({"text": "a"}, timeout=SECONDS)
    with client.session("remember") as session:
        fake.expire_sessions()
        with pytest.raises(SessionUnknownError):
            session.renew()


def test_a_session_runs_one_request_at_a_time(client, fake):
    with (
        fake.hold("remember") as hold,
        client.session("remember") as session,
        session.infer({"text": "a"}, timeout=SECONDS) as call,
    ):
        assert hold.arrived.wait(SECONDS)
        with pytest.raises(SessionBusyError):
            session.run({"text": "b"}, timeout=SECONDS)
        hold.release()
        assert next(call).value == "a"


# --- connections ---


def test_code_that_connects_by_itself_finds_it(fake, tmp_path, monkeypatch):
    fake.write_endpoint(tmp_path)
    monkeypatch.setenv("STAGEWIRE_STATE", str(tmp_path))
    with connect(plan="fake") as client:
        assert client.run("shout", {"text": "a"}, timeout=SECONDS).text("loud") == "A"


async def test_it_gives_a_client_of_each_kind(fake):
    assert fake.client is fake.client
    async with fake.async_client() as client:
        assert isinstance(client, AsyncClient)
        result = await client.run("shout", {"text": "a"}, timeout=SECONDS)
    assert result.text("loud") == "A"


def test_its_public_names_are_these():
    names = ["DataType", "Dimension", "FakeCoordinator", "FakePipeline", "FakeRequest", "Hold"]
    assert stagewire.client.testing.__all__ == [*names, "Port"]
    assert all(getattr(stagewire.client.testing, name).__doc__ for name in names)


def test_it_needs_nothing_of_the_coordinator():
    code = "import sys, stagewire.client.testing; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = set(result.stdout.split())
    assert not {name for name in loaded if name.partition(".")[0] == "coordinator"}
    assert not loaded & {"psutil", "PIL", "pydantic", "stagewire.worker"}
