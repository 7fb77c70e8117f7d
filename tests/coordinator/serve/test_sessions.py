"""Sessions through real workers, with both clients: memory, turns, ends."""

import asyncio
import signal
import threading
import time

import numpy as np
import pytest

from stagewire.errors import (
    CancelledError,
    FieldInvalidError,
    SessionBusyError,
    SessionLostError,
    SessionUnknownError,
    WorkerLostError,
)
from stagewire.limits import SESSION_LONGEST_SECONDS, SESSION_SECONDS
from stagewire.v1 import coordinator_pb2 as pb
from testkit import calls, plans
from testkit.faces import KINDS, beside
from testkit.plans import ONE, TEXT, pipeline, stage
from testkit.running import running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

ITEM = np.ones(4, np.float32)
INPUTS = {"x": ITEM}
COUNT = {"text": {**TEXT, "stream": False}}


def counting():
    """Pipeline `p`: two stages on two workers; output `n` says how often the second was called."""
    return plans.plan(
        {
            "one": stage("a"),
            "two": stage("b", outputs=COUNT, options={"count_calls": True}),
            "stay": stage("b"),
            "other": stage("b", inputs={"x": ONE}, outputs={"y": ONE}),
        },
        {
            "p": pipeline({"x": "one.x"}, {"n": "two.text"}, ("one.y", "two.x")),
            "open": pipeline({"x": "stay.x"}, {"y": "stay.y"}),
            "other": pipeline({"x": "other.x"}, {"y": "other.y"}),
        },
    )


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def counted(session):
    return session.run(INPUTS).text("n")


async def test_stages_remember_the_requests_of_a_session_and_of_no_other(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def talk():
            seen = [client.run("p", INPUTS).text("n")]
            with client.session("p") as first, client.session("p") as second:
                seen += [counted(first), counted(first), counted(second), counted(first)]
                with first.infer({"x": [ITEM]}) as call:
                    seen += [output.value for output in call]
            with client.session("p") as third:
                seen.append(counted(third))
            return seen

        assert await it.ask(talk) == ["0", "1", "2", "1", "3", "4", "1"]


async def test_a_session_says_what_it_is(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def open_both():
            with client.session("p") as usual, client.session("p", idle_timeout=7.5) as short:
                assert usual.session_id != short.session_id
                assert len(usual.session_id) > 32
                return usual.lease_seconds, short.lease_seconds, short.renew()

        assert await it.ask(open_both) == (SESSION_SECONDS, 7.5, 7.5)


async def test_a_second_request_of_a_session_is_refused_until_the_first_has_ended(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def talk():
            with client.session("open") as session:
                with session.infer() as call:
                    assert call.request_id
                    with pytest.raises(SessionBusyError) as refusal:
                        session.run(INPUTS)
                    call.end()
                    assert list(call) == []
                assert refusal.value.facts["id"] == call.receipt.request_id
                return session.run(INPUTS).output("y")

        assert np.array_equal(await it.ask(talk), ITEM)


async def test_after_a_request_was_cancelled_the_next_one_gets_its_turn(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def talk():
            with client.session("open") as session:
                for _ in range(5):
                    with session.infer() as call:
                        call.send("x", ITEM)
                        next(call)
                    assert np.array_equal(session.run(INPUTS).output("y"), ITEM)

        await it.ask(talk)


async def test_closing_frees_the_state_in_every_worker_and_ends_the_request(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def talk():
            with client.session("p") as session:
                counted(session)
                return session

        session = await it.ask(talk)

        for worker in ("a", "b"):
            released = await it.attached(worker).release_session(session.session_id)
            assert released.stages == 0, "nothing is left to release"
        with pytest.raises(SessionUnknownError, match="open a new one"):
            await it.ask(session.run, INPUTS)
        with pytest.raises(SessionUnknownError):
            await it.ask(session.renew)
        await it.ask(session.close)

        def leave_inside():
            with client.session("open") as session, session.infer() as call:
                call.send("x", ITEM)
                next(call)
                session.close()
                with pytest.raises(CancelledError, match="session of the request was closed"):
                    next(call)

        await it.ask(leave_inside)
        await it.until_quiet()


async def test_the_worker_counts_what_it_kept(tmp_path):
    async with running(tmp_path, counting()) as it:

        def talk():
            session = it.client.session("p").__enter__()
            counted(session)
            return session.session_id

        session_id = await it.ask(talk)

        assert (await it.attached("a").release_session(session_id)).stages == 0
        assert (await it.attached("b").release_session(session_id)).stages == 1


async def test_a_session_ends_with_its_lease_and_a_request_holds_it(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:
        sessions = it.coordinator.engine.sessions

        def hold():
            with client.session("open", idle_timeout=0.05) as session:
                with session.infer() as call:
                    call.send("x", ITEM)
                    next(call)
                    opened.set()
                    assert let_go.wait(60)
                    call.end()
                    list(call)
                return session

        opened, let_go = threading.Event(), threading.Event()
        holding = asyncio.create_task(it.ask(hold))
        await until(opened.is_set)
        # Four leases long.
        moment = time.monotonic() + 0.2
        await until(lambda: time.monotonic() > moment)
        assert sessions.count == 1
        let_go.set()
        await holding

        def expire():
            return client.session("p", idle_timeout=0.05).__enter__()

        session = await it.ask(expire)
        await until(lambda: sessions.count == 0)
        with pytest.raises(SessionUnknownError):
            await it.ask(session.run, INPUTS)


async def test_a_session_is_lost_with_a_worker_that_remembers_it(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def enter(name):
            return client.session(name).__enter__()

        session, other = await it.ask(enter, "p"), await it.ask(enter, "open")
        assert await it.ask(counted, session) == "1"

        def die():
            with session.infer() as call:
                call.send("x", ITEM)
                assert call.request_id
                it.signal("a", signal.SIGKILL)
                with pytest.raises(WorkerLostError):
                    list(call)

        incarnation = it.incarnation("a")
        await it.ask(die)
        with pytest.raises(SessionLostError, match="open a new session"):
            await it.ask(counted, session)
        await it.until_ready("one", after=incarnation)
        with pytest.raises(SessionLostError):
            await it.ask(counted, session)
        with pytest.raises(SessionLostError):
            await it.ask(session.renew)
        await it.ask(session.close)

        fresh = await it.ask(enter, "p")
        assert await it.ask(counted, fresh) == "1"
        # No stage of the other one was on that worker.
        assert np.array_equal((await it.ask(other.run, INPUTS)).output("y"), ITEM)


async def test_a_session_outlives_its_connection(tmp_path, kind):
    async with running(tmp_path, counting()) as it:
        async with beside(kind, it.endpoint) as client:
            session = await it.ask(lambda: client.session("p").__enter__())
            assert await it.ask(counted, session) == "1"

        request = pb.RenewSessionRequest(session_id=session.session_id).SerializeToString()
        answer = await it.ask(
            calls.unary,
            it.endpoint.address,
            "/stagewire.v1.CoordinatorService/RenewSession",
            request,
            token=it.endpoint.token,
        )

        assert pb.RenewSessionResponse.FromString(answer).lease.seconds == SESSION_SECONDS


async def test_what_cannot_be_opened_or_used_is_refused(tmp_path, kind):
    async with running(tmp_path, counting()) as it, beside(kind, it.endpoint) as client:

        def reason(pipeline, **named):
            return calls.reason_of(lambda: client.session(pipeline, **named).__enter__())

        assert await it.ask(reason, "nothing") == "PIPELINE_UNKNOWN"
        assert await it.ask(reason, "p", idle_timeout=-1) == "FIELD_INVALID"
        too_long = SESSION_LONGEST_SECONDS + 1
        assert await it.ask(reason, "p", idle_timeout=too_long) == "FIELD_INVALID"

        def misuse():
            with client.session("p") as session:
                session.pipeline = "other"
                with pytest.raises(FieldInvalidError, match="belongs to the pipeline 'p'"):
                    session.run(INPUTS)
            with pytest.raises(RuntimeError, match="once"):
                session.__enter__()
            with pytest.raises(RuntimeError, match="entered"):
                client.session("p").run(INPUTS)

        if kind == "blocking":
            await it.ask(misuse)


async def test_a_worker_that_leaves_in_order_takes_sessions_along(tmp_path):
    async with running(tmp_path, counting()) as it:
        session = await it.ask(lambda: it.client.session("p").__enter__())
        assert await it.ask(counted, session) == "1"
