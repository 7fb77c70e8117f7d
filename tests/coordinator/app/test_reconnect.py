"""A client of a state folder across restarts of the coordinator, of both kinds."""

import threading

import numpy as np
import pytest

from stagewire.errors import CoordinatorUnreachableError, SessionUnknownError, StageError
from testkit import plans
from testkit.faces import KINDS, connected, loop_in_thread
from testkit.plans import pipeline, stage
from testkit.program import program

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

INPUTS = {"x": np.ones(4, np.float32)}
SECONDS = 120


@pytest.fixture(params=KINDS)
def client_of(request):
    """Makes a client of a folder."""
    with loop_in_thread() as loop:
        yield lambda folder, **named: connected(request.param, loop, folder / "state", **named)


def run(client, **named):
    return client.run("p", INPUTS, timeout=SECONDS, **named).output("y")


def unreachable(use):
    with pytest.raises(CoordinatorUnreachableError) as caught:
        use()
    return caught.value.message


def test_the_next_call_finds_a_coordinator_that_was_stopped_and_started_again(tmp_path, client_of):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        client = client_of(tmp_path)
        run(client)
        first.stop()
        first.process.wait(SECONDS)
    with client:
        said = unreachable(lambda: run(client))
        assert "no coordinator is running on the state folder" in said
        assert "coordinator up" in said
        assert "no coordinator is running" in unreachable(client.placement)

        with program(tmp_path, plans.single()) as second:
            second.wait_until_up()
            assert run(client).size == 4
            assert client.placement().plan_name == "test"
            assert next(client.watch()).plan_name == "test"


def test_what_is_under_way_fails_with_the_coordinator_and_the_client_goes_on(tmp_path, client_of):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        client = client_of(tmp_path)
        with client.infer("p", timeout=SECONDS) as call:
            call.send("x", INPUTS["x"])
            next(call)
            states = client.watch()
            next(states)
            session = client.session("p").__enter__()
            first.process.kill()
            first.process.wait(SECONDS)

            said = unreachable(lambda: next(call))
            # The dying process lets go of its connections before its lock.
            assert "ended without a word" in said or "it ends this moment" in said
            with pytest.raises(CoordinatorUnreachableError):
                call.send("x", INPUTS["x"])
            unreachable(lambda: [None for _ in states])

            with client, program(tmp_path, plans.single()) as second:
                second.wait_until_up()
                assert run(client).size == 4
                with pytest.raises(SessionUnknownError, match="was started again"):
                    session.run(INPUTS)


def test_an_idempotent_request_outlives_a_restart(tmp_path, client_of):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        client = client_of(tmp_path)
        # The budget of one client is one story; here it is the new coordinator that is looked for.
        run(client)
        first.process.kill()
        first.process.wait(SECONDS)
    with client, program(tmp_path, plans.single()) as second:
        second.wait_until_up()
        assert run(client, idempotent=True).size == 4


def test_several_threads_share_a_client_across_a_restart(tmp_path, client_of):
    with program(tmp_path, plans.single(limits={"queue": 50})) as first:
        first.wait_until_up()
        client = client_of(tmp_path)
        run(client)
        first.process.kill()
        first.process.wait(SECONDS)
    with client, program(tmp_path, plans.single(limits={"queue": 50})) as second:
        second.wait_until_up()
        failures = []

        def ask():
            try:
                run(client)
            except StageError as error:
                failures.append(error)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SECONDS)
        assert not failures


def test_another_plan_in_its_place_is_said_so(tmp_path, client_of):
    with program(tmp_path, plans.single()) as first:
        first.wait_until_up()
        client = client_of(tmp_path, plan="test")
        run(client)
        first.process.kill()
        first.process.wait(SECONDS)
    other = plans.single() | {"metadata": {"name": "other"}}
    with client, program(tmp_path, other) as second:
        second.wait_until_up()
        assert "runs the plan 'other', not 'test'" in unreachable(lambda: run(client))


def test_the_ports_of_another_plan_are_asked_for_again(tmp_path, client_of):
    def plan(data_type):
        port = {"type": data_type, "shape": [], "stream": True}
        return plans.plan(
            {"one": stage("a", inputs={"x": port}, outputs={"y": port})},
            {"p": pipeline({"x": "one.x"}, {"y": "one.y"})},
        )

    def answer(client):
        return client.run("p", {"x": 7}, timeout=SECONDS).output("y").dtype

    with program(tmp_path, plan("int32")) as first:
        first.wait_until_up()
        client = client_of(tmp_path)
        assert answer(client) == np.int32
        first.process.kill()
        first.process.wait(SECONDS)
    with client, program(tmp_path, plan("float64")) as second:
        second.wait_until_up()
        assert answer(client) == np.float64
