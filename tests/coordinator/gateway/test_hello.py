"""Who may attach: what is said first, with which token, by which process, of which version."""

import asyncio
import os

import pytest

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.gateway.service import Expectation, Gateway
from stagewire.envelope import open_envelope
from stagewire.errors import WorkerHungError
from stagewire.limits import CONTROL_MESSAGE_BYTES, MESSAGE_BYTES
from stagewire.v1 import capability_pb2, tensor_pb2
from stagewire.v1 import gateway_pb2 as pb
from testkit.attaching import TOKEN, Caller, failure_of, hello
from testkit.waiting import until

pytestmark = pytest.mark.integration


async def welcomed(caller):
    call = await caller.attach(hello())
    return call, pb.AttachResponse.FromString(await call.read()).welcome


async def test_a_worker_that_was_started_is_welcomed(caller, expected):
    _, welcome = await welcomed(caller)

    attached = await expected
    assert welcome.incarnation == attached.incarnation == 7
    assert welcome.exchange_token not in ("", TOKEN)
    assert welcome.heartbeat_interval.nanos == 100_000_000


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"worker_id": "b"}, "TOKEN_INVALID"),
        ({"process": capability_pb2.ProcessIdentity(process_id=1)}, "TOKEN_INVALID"),
        ({"wire_version": 0}, "WIRE_VERSION_MISMATCH"),
        ({"wire_version": 99}, "WIRE_VERSION_MISMATCH"),
        ({"environment": capability_pb2.EnvironmentAttestation()}, "ENVIRONMENT_STALE"),
        (
            {"environment": capability_pb2.EnvironmentAttestation(environment_key="key")},
            "ENVIRONMENT_STALE",
        ),
        (
            {
                "environment": capability_pb2.EnvironmentAttestation(
                    environment_key="key",
                    distributions=[
                        capability_pb2.DistributionAttestation(
                            name="stagewire", version="1", record_sha256="cd"
                        )
                    ],
                )
            },
            "ENVIRONMENT_STALE",
        ),
    ],
)
async def test_another_worker_than_was_started_is_refused_and_the_start_fails(
    caller, expected, changes, reason
):
    call = await caller.attach(hello(**changes))

    assert (await failure_of(call)).reason == reason
    assert expected.exception().reason == reason
    assert caller.gateway.refusals == {"Attach": 1}


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "\u00e4"])
async def test_a_wrong_token_is_refused_and_the_worker_is_waited_for_on(caller, expected, token):
    call = await caller.attach(hello(token=token))

    assert (await failure_of(call)).reason == "TOKEN_INVALID"
    assert caller.gateway.refusals == {"Attach": 1}
    assert not expected.done()
    await welcomed(caller)
    assert (await expected).incarnation == 7


async def test_a_token_is_good_for_one_hello(caller, expected):
    await welcomed(caller)

    call = await caller.attach(hello())

    assert (await failure_of(call)).reason == "TOKEN_INVALID"
    assert (await expected).fence_reason is None


async def test_a_token_that_nobody_waits_for_any_more_is_refused(caller, expected):
    expected.cancel()
    # The gateway forgets it at the next turn of the loop.
    await asyncio.wait([expected])

    call = await caller.attach(hello())

    assert (await failure_of(call)).reason == "TOKEN_INVALID"


@pytest.mark.parametrize(
    "first", [b"", b"\xff\xff", pb.AttachRequest(heartbeat=pb.Heartbeat())], ids=str
)
async def test_whatever_is_no_hello_is_refused(caller, expected, first):
    call = await caller.attach(first)

    assert (await failure_of(call)).reason == "FIELD_INVALID"
    assert not expected.done()


async def test_a_stream_that_ends_without_a_word_is_refused(caller):
    call = caller.call("Attach")
    await call.done_writing()

    assert (await failure_of(call)).reason == "FIELD_INVALID"


async def test_a_hello_after_the_first_changes_nothing_and_is_counted(caller, expected, caplog):
    call, _ = await welcomed(caller)
    attached = await expected
    said = attached.hello

    for _ in range(100):
        await call.write(hello(worker_id="b", wire_version=99).SerializeToString())
    await call.write(pb.AttachRequest(heartbeat=pb.Heartbeat()).SerializeToString())

    await until(lambda: attached.heartbeat is not None)
    assert (attached.worker_id, attached.hello) == ("a", said)
    assert attached.fence_reason is None
    assert attached.repeated_hellos == 100
    # Once: whoever repeats it must not fill the log.
    assert caplog.text.count("Hello repeated worker=a; it is ignored") == 1


def expect(gateway, token, incarnation):
    expectation = Expectation(
        WorkerId("a"), Incarnation(incarnation), os.getpid(), "key", {"stagewire": "ab"}
    )
    return gateway.expect(token, expectation)


async def test_tokens_of_an_incarnation_that_is_gone_open_nothing(caller, expected, caplog):
    first, before = await welcomed(caller)
    first.cancel()
    attached = await expected
    await until(lambda: attached.fence_reason is not None)
    successor = expect(caller.gateway, "the token of its next life", 8)
    call = await caller.attach(hello(token="the token of its next life"))
    now = pb.AttachResponse.FromString(await call.read()).welcome
    living = await successor

    for method, token in (("Exchange", before.exchange_token), ("Exchange", TOKEN)):
        failure = await failure_of(caller.call(method, token))
        assert failure.reason == "TOKEN_INVALID"
    assert (await failure_of(await caller.attach(hello()))).reason == "TOKEN_INVALID"

    assert caller.gateway.refusals == {"Exchange": 2, "Attach": 1}
    assert "Exchange refused reason=TOKEN_INVALID count=2" in caplog.text
    assert (living.incarnation, living.fence_reason) == (8, None)
    living.send(pb.ExchangeMessage(execution_id=3))
    assert await caller.call("Exchange", now.exchange_token).read()


async def test_the_exchange_token_of_one_worker_reaches_no_other(caller, expected):
    _, welcome = await welcomed(caller)
    other = expect(caller.gateway, "the token of another", 8)
    await caller.attach(hello(token="the token of another"))
    attached, stranger = await expected, await other

    call = caller.call("Exchange", welcome.exchange_token)
    attached.send(pb.ExchangeMessage(execution_id=7))

    envelope, _ = open_envelope(await call.read(), pb.ExchangeResponse())
    assert [message.execution_id for message in envelope.messages] == [7]
    assert stranger.fence_reason is None


async def test_a_worker_that_ends_attach_is_fenced(caller, expected):
    call, _ = await welcomed(caller)
    attached = await expected
    asked = asyncio.create_task(attached.load(pb.LoadStage(stage_id="one")))

    await call.done_writing()

    with pytest.raises(Exception, match="ended Attach") as caught:
        await asked
    assert caught.value.reason == attached.fence_reason.reason == "WORKER_LOST"


@pytest.mark.parametrize(
    ("message", "reason"),
    [(b"\xff\xff\xff", "FIELD_INVALID"), (bytes(CONTROL_MESSAGE_BYTES + 1), "MESSAGE_TOO_BIG")],
    ids=["garbage", "too much"],
)
async def test_what_cannot_be_read_on_attach_fences_the_worker(caller, expected, message, reason):
    call, _ = await welcomed(caller)
    attached = await expected

    await call.write(message)

    assert (await failure_of(call)).reason == reason
    assert attached.fence_reason.reason == "WORKER_LOST"


async def exchanging(caller, expected):
    _, welcome = await welcomed(caller)
    return await expected, caller.call("Exchange", welcome.exchange_token), welcome


@pytest.mark.parametrize("token", ["", "wrong", TOKEN])
async def test_exchange_wants_the_token_of_welcome(caller, expected, token):
    await welcomed(caller)
    call = caller.call("Exchange", token)

    assert (await failure_of(call)).reason == "TOKEN_INVALID"
    assert (await expected).fence_reason is None


async def test_the_token_of_welcome_is_good_for_one_exchange(caller, expected):
    attached, first, welcome = await exchanging(caller, expected)
    attached.send(pb.ExchangeMessage(execution_id=3, end_of_port=pb.EndOfPort(port="x")))
    envelope, _ = open_envelope(await first.read(), pb.ExchangeResponse())
    assert envelope.messages[0].execution_id == 3

    second = caller.call("Exchange", welcome.exchange_token)

    assert (await failure_of(second)).reason == "TOKEN_INVALID"
    assert attached.fence_reason is None


GARBAGE = {
    "no message": b"\xff\xff\xff",
    "half an envelope": pb.ExchangeRequest(
        messages=[pb.ExchangeMessage(execution_id=1, item=tensor_pb2.Item(port="x"))]
    ).SerializeToString()[:-1],
    "a field of another type": b"\x0d\x01\x02",
    "messages that are none": b"\x0a\x03\xff\xff\xff",
}


@pytest.mark.parametrize("message", GARBAGE.values(), ids=GARBAGE)
async def test_what_cannot_be_read_on_exchange_fences_the_worker(caller, expected, message):
    attached, call, _ = await exchanging(caller, expected)

    await call.write(message)

    assert (await failure_of(call)).reason == "PAYLOAD_CORRUPT"
    assert attached.fence_reason.reason == "WORKER_LOST"


async def test_an_envelope_of_a_million_empty_messages_fences_the_worker(caller, expected):
    attached, call, _ = await exchanging(caller, expected)

    await call.write(b"\x0a\x00" * (MESSAGE_BYTES // 2 - 100))

    assert (await failure_of(call)).reason == "MESSAGE_TOO_BIG"
    assert attached.fence_reason.reason == "WORKER_LOST"


async def test_messages_about_executions_that_nobody_knows_change_nothing(caller, expected):
    attached, call, _ = await exchanging(caller, expected)
    strange = [
        pb.ExchangeMessage(execution_id=99, item=tensor_pb2.Item(port="x")),
        pb.ExchangeMessage(execution_id=99, execution_done=pb.ExecutionDone()),
        pb.ExchangeMessage(execution_id=99),
        pb.ExchangeMessage(),
    ]
    await call.write(pb.ExchangeRequest(messages=strange).SerializeToString())
    attached.send(pb.ExchangeMessage(execution_id=3))

    assert await call.read()
    assert attached.fence_reason is None
    assert not attached.cancel(99)


async def test_nothing_is_sent_to_or_taken_from_a_fenced_incarnation(caller, expected):
    attached, _, _ = await exchanging(caller, expected)
    reason = WorkerHungError("it hung")
    attached.fence(reason)

    with pytest.raises(WorkerHungError):
        await attached.load(pb.LoadStage(stage_id="one"))
    with pytest.raises(WorkerHungError):
        attached.begin(1, None, pb.StartExecution())
    assert not attached.cancel(1)
    attached.fence(ValueError("later"))
    assert attached.fence_reason is reason


async def test_a_caller_that_says_nothing_does_not_hold_its_call(leak_probe):
    gateway = Gateway(heartbeat_seconds=0.1, hello_seconds=0.1)
    await gateway.start()
    caller = Caller(gateway)

    failure = await asyncio.wait_for(failure_of(caller.call("Attach")), 30)

    assert (failure.reason, "Hello" in failure.message) == ("FIELD_INVALID", True)
    await caller.close()
    await gateway.stop()
