"""A gateway, and a worker that it waits for."""

import os

import pytest

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.gateway.service import Expectation, Gateway
from testkit.attaching import TOKEN, Caller


@pytest.fixture
async def gateway(leak_probe):
    gateway = Gateway(heartbeat_seconds=0.1)
    await gateway.start()
    yield gateway
    await gateway.stop()


@pytest.fixture
async def caller(gateway):
    caller = Caller(gateway)
    yield caller
    await caller.close()


@pytest.fixture
async def expected(gateway):
    """The attachment of the worker that the supervisor has started."""
    expectation = Expectation(
        WorkerId("a"), Incarnation(7), os.getpid(), "key", {"stagewire": "ab"}
    )
    future = gateway.expect(TOKEN, expectation)
    yield future
    future.cancel()
