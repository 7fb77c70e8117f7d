"""A request that kills whatever worker executes it: two deaths, and it is not run again."""

import asyncio
import contextlib
import itertools
import signal

import numpy as np
import pytest

from coordinator.pipeline.topology import Endpoint
from coordinator.supervise.policy import RestartLimits
from stagewire.errors import RequestPoisonousError, StageError
from stagewire.items import to_chunks
from testkit import plans
from testkit.plans import deed
from testkit.running import running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

DEADLY = 13.0
LIMITS = RestartLimits(first_delay_seconds=0.01, intensity=1000)
AT_ONCE = 8
REQUESTS = 1000


class Sink:
    """Takes what a client would get."""

    def __init__(self):
        self.values, self.error = [], None

    def item(self, port, item, payload, *, is_whole):
        self.values.append(np.frombuffer(payload, np.float32))

    def end(self, port, item_count):
        pass

    def input_credit(self, port, items, size_bytes):
        pass

    def finished(self, request):
        pass

    def failed(self, error):
        self.error = error


def opened(it, name, number):
    """Opens an attempt at a request; returns None while somebody else has to end first."""
    sink = Sink()
    try:
        request = it.coordinator.engine.open(
            "p1", sink, request_id=name, attempt=number, is_idempotent=True
        )
    except StageError as refusal:
        if refusal.retry_delay_ms is None:
            raise
        return None
    return request, sink


def send(request, value):
    [chunk] = to_chunks("x", 0, np.full(4, value, np.float32))
    request.take(Endpoint(None, "x"), chunk.item, chunk.payload)


async def attempt(it, name, number, value):
    """Makes one attempt at a request of one item; returns how it failed, or None.

    Raises:
        StageError: it is refused for good.
    """
    request, sink = await until(lambda: opened(it, name, number))
    send(request, value)
    request.end_inputs()
    await request.settled
    assert sink.error or np.array_equal(sink.values, [np.full(4, value, np.float32)])
    return sink.error


async def persist(it, name, value):
    """Tries again as long as that may help, as a client does; returns the last failure."""
    for number in itertools.count(1):
        error = await attempt(it, name, number, value)
        if error is None or not error.is_retryable:
            return error
    return None


@contextlib.asynccontextmanager
async def plan_with(folder, do, **limits):
    """Brings up a plan whose first stage does harm at one value."""
    fields = {"limits": limits} if limits else {}
    plan = plans.chain(first=[deed(do, value=DEADLY)], first_fields=fields)
    async with running(folder, plan, restarts=LIMITS) as it:
        yield it


@pytest.mark.parametrize("do", ["segfault", "exit"])
async def test_its_second_death_is_its_last_and_a_thousand_others_do_not_notice(tmp_path, do):
    async with plan_with(tmp_path, do) as it:
        names = iter([(f"r{number}", float(number % 7)) for number in range(REQUESTS)])
        answers = {}

        async def take_turns():
            for name, value in names:
                answers[name] = await persist(it, name, value)

        poison = asyncio.create_task(persist(it, "poison", DEADLY))
        await asyncio.gather(*(take_turns() for _ in range(AT_ONCE)))
        error = await poison

        assert error.reason == "REQUEST_POISONOUS"
        assert error.facts["deaths"] == "2"
        assert (len(answers), set(answers.values())) == (REQUESTS, {None})
        assert it.coordinator.runners["a"].restarts == 2
        with pytest.raises(RequestPoisonousError) as caught:
            opened(it, "poison", 9)
        assert not caught.value.is_retryable
        await it.run("p", {"x": np.ones(4, np.float32)})


async def test_those_beside_it_are_not_taken_for_it(tmp_path):
    async with plan_with(tmp_path, "segfault", concurrency=4, queue=16) as it:
        requests = {"poison": DEADLY} | {f"r{number}": float(number) for number in range(7)}

        answers = dict(
            zip(
                requests,
                await asyncio.gather(*(persist(it, *request) for request in requests.items())),
                strict=True,
            )
        )

        assert answers.pop("poison").reason == "REQUEST_POISONOUS"
        assert set(answers.values()) == {None}
        assert it.coordinator.runners["a"].restarts <= 4


async def test_a_person_who_kills_a_worker_once_blames_nobody(tmp_path):
    async with plan_with(tmp_path, "segfault") as it:
        request, sink = opened(it, "idle", 1)
        send(request, 1.0)
        it.signal("a", signal.SIGKILL)
        await request.settled

        await it.until_ready("one", after=1)

        assert sink.error.reason == "WORKER_LOST"
        assert await attempt(it, "idle", 2, 1.0) is None
