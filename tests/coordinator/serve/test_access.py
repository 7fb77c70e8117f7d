"""Who may ask: tokens on every service, health for everybody."""

import asyncio
import json
import signal

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from coordinator.supervise.policy import RestartLimits
from stagewire.client import Client
from stagewire.errors import TokenInvalidError
from stagewire.v1 import management_pb2
from testkit import calls, plans
from testkit.program import program
from testkit.running import make, running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

PUBLIC = "stagewire.v1.CoordinatorService"
MANAGEMENT = "stagewire.v1.ManagementService"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
HEALTH = "grpc.health.v1.Health"


async def test_every_service_wants_its_own_token(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        here = it.endpoint
        doors = [
            (here.address, f"/{PUBLIC}/{rpc}", here.token)
            for rpc in ("Run", "Infer", "GetPlacement", "WatchState")
        ]
        doors += [
            (here.management_address, f"/{MANAGEMENT}/{rpc}", here.management_token)
            for rpc in ("Shutdown", "RestartWorker")
        ]
        doors += [
            (address, f"/{REFLECTION}/ServerReflectionInfo", token)
            for address, token in (
                (here.address, here.token),
                (here.management_address, here.management_token),
            )
        ]
        other = {here.token: here.management_token, here.management_token: here.token}
        for address, method, token in doors:
            for wrong in (None, "", "x", token[:-1], token + "x", other[token]):
                error = await it.failure(calls.unary, address, method, token=wrong)
                assert error.reason == "TOKEN_INVALID", (method, wrong)
                assert token not in error.message
        await it.run("p", {"x": np.ones(1, np.float32)})


async def test_services_of_one_listener_are_not_on_the_other(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        here = it.endpoint
        code = await it.ask(
            calls.code_of, here.address, f"/{MANAGEMENT}/Shutdown", token=here.token
        )
        assert code is grpc.StatusCode.UNIMPLEMENTED
        code = await it.ask(
            calls.code_of,
            here.management_address,
            f"/{PUBLIC}/GetPlacement",
            token=here.management_token,
        )
        assert code is grpc.StatusCode.UNIMPLEMENTED


async def test_the_client_reports_a_wrong_token(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        with Client(it.endpoint.address, "wrong") as client:
            error = await it.failure(client.run, "p", {"x": np.ones(1, np.float32)})

        assert isinstance(error, TokenInvalidError)


async def test_reflection_names_the_services_to_whoever_has_the_token(tmp_path):
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    async with running(tmp_path, plans.single()) as it:
        [answer] = await it.ask(
            calls.stream,
            it.endpoint.address,
            f"/{REFLECTION}/ServerReflectionInfo",
            [request.SerializeToString()],
            token=it.endpoint.token,
        )

        response = reflection_pb2.ServerReflectionResponse.FromString(answer)
        names = {item.name for item in response.list_services_response.service}
        assert names == {PUBLIC, HEALTH, REFLECTION}


def health(it, service=""):
    request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    answer = calls.unary(it.endpoint.address, f"/{HEALTH}/Check", request)
    status = health_pb2.HealthCheckResponse.FromString(answer).status
    return health_pb2.HealthCheckResponse.ServingStatus.Name(status)


async def test_health_follows_processes_and_needs_no_token(tmp_path):
    limits = RestartLimits(first_delay_seconds=600)
    async with running(tmp_path, plans.chain(), restarts=limits, checks=False) as it:
        names = ("", "stage.one", "stage.two")
        assert [await it.ask(health, it, name) for name in names] == ["SERVING"] * 3

        it.signal("a", signal.SIGKILL)
        while await it.ask(health, it) == "SERVING":
            pass

        wanted = ["NOT_SERVING", "NOT_SERVING", "SERVING"]
        assert [await it.ask(health, it, name) for name in names] == wanted
        await it.ask(
            calls.unary,
            it.endpoint.management_address,
            f"/{MANAGEMENT}/RestartWorker",
            management_pb2.RestartWorkerRequest(worker_id="a").SerializeToString(),
            token=it.endpoint.management_token,
        )
        while await it.ask(health, it) != "SERVING":
            pass
        assert await it.ask(health, it, "stage.one") == "SERVING"


async def test_an_unknown_worker_cannot_be_restarted(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        error = await it.failure(
            calls.unary,
            it.endpoint.management_address,
            f"/{MANAGEMENT}/RestartWorker",
            management_pb2.RestartWorkerRequest(worker_id="z").SerializeToString(),
            token=it.endpoint.management_token,
        )

        assert error.reason == "WORKER_UNKNOWN"


async def test_a_shutdown_that_is_asked_for_begins(tmp_path):
    async with running(tmp_path, plans.single()) as it:
        answer = await it.ask(
            calls.unary,
            it.endpoint.management_address,
            f"/{MANAGEMENT}/Shutdown",
            management_pb2.ShutdownRequest().SerializeToString(),
            token=it.endpoint.management_token,
        )

        assert management_pb2.ShutdownResponse.FromString(answer).running_requests == 0
        await it.coordinator.wait_for_stop()


async def test_the_state_is_sent_whole_at_once_and_after_every_change(tmp_path):
    async with running(tmp_path, plans.chain()) as it:
        states = []

        def watch():
            for state in it.client.watch():
                states.append(state)
                phases = [worker.phase.name for worker in state.workers]
                if state.workers[0].incarnation > 2 and phases == ["READY", "READY"]:
                    return

        watching = asyncio.create_task(it.ask(watch))
        await until(lambda: states)
        first = states[0]
        assert first.plan_name == "test"
        assert [worker.phase.name for worker in first.workers] == ["READY", "READY"]
        assert all(pipeline.is_ready for pipeline in first.pipelines)
        it.signal("a", signal.SIGKILL)
        await watching

        seen = {state.workers[0].phase.name for state in states}
        assert {"READY", "RESTARTING", "STARTING"} <= seen
        unready = [state for state in states if state.workers[0].phase.name != "READY"]
        by_name = {item.pipeline: item.is_ready for item in unready[0].pipelines}
        assert by_name == {"p": False, "p1": False, "p2": True}
        assert states[-1].workers[0].last_reason == "WORKER_LOST"
        assert states[-1].workers[0].restarts == 1


async def test_watchers_see_the_end(tmp_path):
    states = []

    def watch(endpoint):
        with Client(endpoint.address, endpoint.token) as client:
            for state in client.watch():
                states.append(state.phase.name)

    coordinator = make(tmp_path, plans.single())
    async with coordinator.running() as endpoint:
        watching = asyncio.create_task(asyncio.to_thread(watch, endpoint))
        await until(lambda: states)
    await asyncio.gather(watching, return_exceptions=True)

    assert states[-1] == "STOPPED"
    assert "DRAINING" in states


def test_the_token_is_in_no_argument_and_no_environment(tmp_path):
    with program(tmp_path, plans.single()) as it:
        it.wait_until_up()
        [worker] = it.descendants()
        said = " ".join([*worker.cmdline(), *worker.environ().values()])

        secrets = (it.folder / "state/endpoint.json").read_text()

    endpoint = json.loads(secrets)
    for name in ("token", "management_token"):
        assert endpoint[name] not in said
