"""What clients may send, and how everything else is refused without harm to others."""

import asyncio

import numpy as np
import psutil
import pytest

from coordinator.serve.public import CoordinatorService
from stagewire import frame
from stagewire.errors import FieldInvalidError
from stagewire.items import to_chunks
from stagewire.limits import CHUNK_BYTES, MESSAGE_BYTES, TEXT_BYTES, WINDOW_ITEMS
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import tensor_pb2
from testkit import calls, plans
from testkit.plans import FLOATS, ONE, deed, pipeline, stage
from testkit.running import running
from testkit.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

SERVICE = "/stagewire.v1.CoordinatorService/"
FLOAT = np.ones(4, np.float32)
FIXED = {"type": "float32", "shape": [4], "stream": False}
PLAN = plans.plan(
    {
        "one": stage("a"),
        "pair": stage("a", inputs={"a": ONE, "b": FIXED}, outputs={"y": ONE, "z": ONE}),
    },
    {
        "p": pipeline({"x": "one.x"}, {"y": "one.y"}),
        "pair": pipeline({"a": "pair.a", "b": "pair.b"}, {"y": "pair.y", "z": "pair.z"}),
    },
)


async def answers_still(it):
    result = await it.run("pair", {"a": FLOAT, "b": FLOAT})
    assert set(result.outputs) == {"y", "z"}
    assert len((await it.run("p", {"x": FLOAT})).outputs["y"]) == 1


@pytest.mark.parametrize(
    ("inputs", "reason", "words"),
    [
        ({"a": FLOAT.astype(np.int32), "b": FLOAT}, "TENSOR_MISMATCH", "float32"),
        ({"a": FLOAT.astype(np.float64), "b": FLOAT}, "TENSOR_MISMATCH", "float32"),
        ({"a": "text", "b": FLOAT}, "TENSOR_MISMATCH", "float32"),
        ({"a": np.ones((2, 2), np.float32), "b": FLOAT}, "TENSOR_MISMATCH", "'a'"),
        ({"a": np.float32(1), "b": FLOAT}, "TENSOR_MISMATCH", "'a'"),
        ({"a": np.ones(17, np.float32), "b": FLOAT}, "TENSOR_MISMATCH", "16"),
        ({"a": FLOAT, "b": np.ones(3, np.float32)}, "TENSOR_MISMATCH", "4"),
        ({"a": FLOAT}, "TENSOR_MISMATCH", "'b' needs one item"),
        ({}, "TENSOR_MISMATCH", "needs one item"),
        ({"a": FLOAT, "b": FLOAT, "c": FLOAT}, "FIELD_INVALID", "a, b"),
        ({"a": FLOAT, "b": FLOAT, "../b": FLOAT}, "FIELD_INVALID", "a, b"),
    ],
)
async def test_inputs_that_break_the_rules_of_a_port_are_refused(tmp_path, inputs, reason, words):
    async with running(tmp_path, PLAN) as it:
        error = await it.failure(it.client.run, "pair", inputs)

        assert error.reason == reason
        assert words in error.message
        await answers_still(it)


async def test_names_and_ids_that_do_not_hold_are_refused(tmp_path):
    async with running(tmp_path, PLAN) as it:

        async def reason(pipeline="p", **named):
            error = await it.failure(it.client.run, pipeline, {"x": FLOAT}, **named)
            return error.reason

        assert await reason("nowhere") == "PIPELINE_UNKNOWN"
        assert await reason(outputs=["z"]) == "FIELD_INVALID"
        assert await reason(request_id="No Id!") == "FIELD_INVALID"
        assert await reason(request_id="x" * 65) == "FIELD_INVALID"


async def test_a_request_id_is_used_once(tmp_path):
    async with running(tmp_path, PLAN) as it:

        def while_running():
            with it.client.infer("p", request_id="again") as call:
                assert call.request_id == "again"
                reasons = [calls.reason_of(it.client.run, "p", {"x": FLOAT}, request_id="again")]
                call.end()
                list(call)
            return reasons

        assert await it.ask(while_running) == ["REQUEST_DUPLICATE"]
        error = await it.failure(it.client.run, "p", {"x": FLOAT}, request_id="again")
        assert error.reason == "REQUEST_DUPLICATE"
        assert error.facts["id"] == "again"


async def test_a_second_item_on_a_port_that_is_no_stream_is_refused(tmp_path):
    async with running(tmp_path, PLAN) as it:

        def send_twice():
            with it.client.infer("pair") as call:
                call.send("a", FLOAT)
                call.send("a", FLOAT)
                call.end()
                return list(call)

        error = await it.failure(send_twice)

        assert error.reason == "TENSOR_MISMATCH"
        assert "no stream" in error.message
        await answers_still(it)


async def test_only_the_outputs_that_were_asked_for_are_sent(tmp_path):
    async with running(tmp_path, PLAN) as it:
        result = await it.run("pair", {"a": FLOAT, "b": FLOAT}, outputs=["z"])

        assert list(result.outputs) == ["z"]


async def test_large_tensors_pass_whole_in_both_directions(tmp_path):
    sent = np.random.default_rng(7).random(3_000_000, np.float32)
    async with running(tmp_path, plans.chain()) as it:
        result = await it.run("p", {"x": sent})

        assert np.array_equal(result.outputs["y"][0], sent)
        assert {hop.transport for hop in result.receipt.hops} == {"chunked"}


async def test_a_text_may_have_its_limit_and_the_refusal_of_more_counts_the_text_alone(tmp_path):
    text = {"type": "utf8", "shape": [], "stream": False}
    raw = {"type": "bytes", "shape": [], "stream": False}
    plan = plans.plan(
        {
            "text": stage("a", inputs={"x": text}, outputs={"y": text}),
            "raw": stage("a", inputs={"x": raw}, outputs={"y": raw}),
        },
        {name: pipeline({"x": f"{name}.x"}, {"y": f"{name}.y"}) for name in ("text", "raw")},
    )
    async with running(tmp_path, plan) as it:
        for name, value, more in (
            ("text", "é" * (TEXT_BYTES // 2), "a"),
            ("raw", bytes(TEXT_BYTES), b"a"),
        ):
            await it.run(name, {"x": value})

            error = await it.failure(it.client.run, name, {"x": value + more})

            assert error.reason == "MESSAGE_TOO_BIG"
            assert f" of {TEXT_BYTES + 1} bytes, the limit is {TEXT_BYTES}" in error.message


async def test_numbers_of_python_take_the_type_of_their_port(tmp_path):
    kinds = ("int64", "float32", "bool")
    ports = {kind: {"type": kind, "shape": [], "stream": False} for kind in kinds}
    row = {"row": {"type": "float32", "shape": ["n<=4"], "stream": False}}
    inputs = ports | row
    plan = plans.plan(
        {"one": stage("a", inputs=inputs, outputs={"y": ONE})},
        {"p": pipeline({name: f"one.{name}" for name in inputs}, {"y": "one.y"})},
    )
    given = {"int64": 3, "float32": 1, "bool": True, "row": [1, 0.5]}
    async with running(tmp_path, plan) as it:
        hops = {hop.source: hop.size_bytes for hop in (await it.run("p", given)).receipt.hops}
        assert [hops[name] for name in inputs] == [8, 4, 1, 8]

        for name, value in (("int64", 0.5), ("float32", 2**24 + 1), ("bool", 2), ("row", ["a"])):
            error = await it.failure(it.client.run, "p", given | {name: value})

            assert error.reason == "TENSOR_MISMATCH"
            assert f"port {name!r} takes {inputs[name]['type']}" in error.message


async def test_many_requests_at_once_get_their_own_answers(tmp_path):
    plan = plans.chain(
        first_fields={"limits": {"concurrency": 2, "queue": 30}},
        second_fields={"limits": {"concurrency": 3, "queue": 30}},
    )
    values = [np.full(number + 1, number, np.float32) for number in range(24)]
    async with running(tmp_path, plan) as it:
        results = await asyncio.gather(*(it.run("p", {"x": value}) for value in values))

        for value, result in zip(values, results, strict=True):
            assert np.array_equal(result.outputs["y"][0], value)


async def test_a_lane_that_is_full_says_when_to_come_again(tmp_path):
    plan = plans.single(limits={"concurrency": 1, "queue": 1})
    async with running(tmp_path, plan) as it:

        def fill():
            with it.client.infer("p") as first, it.client.infer("p") as second:
                assert first.request_id != second.request_id
                try:
                    return it.client.run("p", {"x": FLOAT})
                finally:
                    for call in (first, second):
                        call.end()
                        assert list(call) == []

        error = await it.failure(fill)

        assert error.reason == "LANE_FULL"
        assert error.retry_delay_ms
        await it.run("p", {"x": FLOAT})


# --- what only another client would send ---


def opening(pipeline="p", **fields):
    return pb.InferRequest(open=pb.InferOpen(pipeline=pipeline, **fields)).SerializeToString()


def item_messages(value, port="x", sequence=0):
    return [
        frame.join(pb.InferRequest(item=chunk.item).SerializeToString(), [chunk.payload])
        for chunk in to_chunks(port, sequence, value)
    ]


END = pb.InferRequest(end_of_input=pb.EndOfInput()).SerializeToString()
GARBAGE = bytes(range(255, 0, -1)) * 3


def infer(it, *messages):
    return calls.stream(it.endpoint.address, SERVICE + "Infer", messages, token=it.endpoint.token)


def run(it, message):
    return calls.unary(it.endpoint.address, SERVICE + "Run", message, token=it.endpoint.token)


async def test_streams_that_follow_no_grammar_are_refused(tmp_path):
    [item] = item_messages(FLOAT)
    streams = {
        "nothing": [],
        "garbage": [GARBAGE],
        "half a message": [opening()[:-3]],
        "an item first": [item, opening()],
        "an end first": [END],
        "two openings": [opening(), opening()],
        "an empty message": [opening(), b""],
        "garbage later": [opening(), GARBAGE],
        "half an item later": [opening(), item[:-30]],
        "an unknown port ends": [opening(), item_messages(FLOAT, port="q")[0]],
    }
    async with running(tmp_path, PLAN) as it:
        for name, messages in streams.items():
            error = await it.failure(infer, it, *messages)
            assert error.reason in ("FIELD_INVALID", "PAYLOAD_CORRUPT"), name
        error = await it.failure(infer, it, opening(), item)
        assert error.reason == "CANCELLED"
        assert "end_of_input" in error.message
        await answers_still(it)


async def test_unary_messages_that_cannot_be_read_are_refused(tmp_path):
    outside = pb.RunRequest(open=pb.InferOpen(pipeline="p"))
    [chunk] = to_chunks("x", 0, FLOAT)
    outside.items.append(chunk.item)
    async with running(tmp_path, PLAN) as it:
        for message in (GARBAGE, b"\x0a", outside.SerializeToString()):
            error = await it.failure(run, it, message)
            assert error.reason in ("FIELD_INVALID", "PAYLOAD_CORRUPT")
        error = await it.failure(run, it, b"")
        assert error.reason == "PIPELINE_UNKNOWN"
        await answers_still(it)


async def test_descriptors_that_lie_are_refused_before_anything_is_allocated(tmp_path):
    def claim(shape, size, data_type=tensor_pb2.DATA_TYPE_FLOAT32, payload=b"1234", **fields):
        descriptor = tensor_pb2.TensorDescriptor(data_type=data_type, shape=shape, size_bytes=size)
        item = tensor_pb2.Item(
            port="x", tensor=descriptor, payload_size_bytes=len(payload), **fields
        )
        return frame.join(pb.InferRequest(item=item).SerializeToString(), [payload])

    claims = {
        "size differs from shape": claim([4], 4),
        "a shape that overflows": claim([0, 1 << 61], 0),
        "nine dimensions": claim([1] * 9, 4),
        "no element type": claim([1], 4, 0),
        "an unknown element type": claim([1], 4, 99),
        "two GiB": claim([1 << 29], 1 << 31),
        "larger than the port": claim([4_000_001], 16_000_004),
        "a payload that is too short": claim([4], 16),
        "no checksum on a chunk": claim([1 << 18], 1 << 20),
        "an offset at the start": claim([1], 4, chunk_offset_bytes=4),
        "a sequence that skips": claim([1], 4, sequence=1),
        "a payload elsewhere": claim([1], 4, payload_offset_bytes=1),
    }
    reasons = ("FIELD_INVALID", "PAYLOAD_CORRUPT", "MESSAGE_TOO_BIG", "TENSOR_MISMATCH")
    async with running(tmp_path, PLAN) as it:
        before = psutil.Process().memory_info().rss
        for name, message in claims.items():
            error = await it.failure(infer, it, opening(), message, END)
            assert error.reason in reasons, name
        assert psutil.Process().memory_info().rss - before < 64 << 20
        await answers_still(it)


async def test_chunks_that_are_damaged_or_out_of_order_are_refused(tmp_path):
    first, second, third = item_messages(np.ones(3 * CHUNK_BYTES // 4, np.float32))
    damaged = bytearray(second)
    damaged[-1] ^= 1
    streams = {
        "damaged": [first, bytes(damaged), third],
        "swapped": [first, third, second],
        "repeated": [first, first],
        "left out": [first, third],
        "ended early": [first, second],
        "another item between": [first, *item_messages(FLOAT, sequence=1)],
    }
    async with running(tmp_path, PLAN) as it:
        for name, messages in streams.items():
            error = await it.failure(infer, it, opening(), *messages, END)
            assert error.reason == "PAYLOAD_CORRUPT", name
        await answers_still(it)


async def test_messages_over_the_limit_are_refused(tmp_path):
    big = b"\x7a" + b"\x80\x80\xc0\x02" + bytes(5 << 20)
    async with running(tmp_path, PLAN) as it:
        assert len(big) > MESSAGE_BYTES
        for error in (await it.failure(run, it, big), await it.failure(infer, it, big)):
            assert error.reason == "MESSAGE_TOO_BIG"
        await answers_still(it)


async def test_a_message_of_a_million_empty_parts_is_refused_before_it_is_read(tmp_path):
    # Field 2 of RunRequest with no bytes, again and again: each would become an object.
    message = b"\x12\x00" * (MESSAGE_BYTES // 2 - 100)
    async with running(tmp_path, PLAN) as it:
        before = psutil.Process().memory_info().rss

        error = await it.failure(run, it, message)

        assert error.reason == "MESSAGE_TOO_BIG"
        assert psutil.Process().memory_info().rss - before < 64 << 20
        await answers_still(it)


async def test_a_client_that_sends_more_than_its_credit_is_refused(tmp_path):
    # Nobody takes the outputs, so that the stage stops taking inputs.
    messages = [opening()]
    for sequence in range(6 * WINDOW_ITEMS):
        messages += item_messages(FLOAT, sequence=sequence)
    async with running(tmp_path, PLAN) as it:
        error = await it.failure(infer, it, *messages, END)

        assert error.reason == "PAYLOAD_CORRUPT"
        assert "credit" in error.message
        await answers_still(it)


async def test_outputs_that_do_not_fit_into_one_answer_are_refused(tmp_path):
    plan = plans.plan(
        {
            "one": stage("a", outputs={"y": FLOATS, "z": FLOATS}),
            "two": stage("a", inputs={"x": FLOATS, "w": FLOATS}),
        },
        {"p": pipeline({"x": "one.x"}, {"y": "two.y"}, ("one.y", "two.x"), ("one.z", "two.w"))},
    )
    async with running(tmp_path, plan) as it:
        # Goes in within one message; twice as much comes out.
        value = np.ones(400_000, np.float32)

        error = await it.failure(it.client.run, "p", {"x": value})

        assert error.reason == "MESSAGE_TOO_BIG"
        assert "`infer`" in error.message


# --- what stages do wrong ---


@pytest.mark.parametrize("do", ["wrong_shape", "wrong_type"])
async def test_an_output_that_breaks_its_port_is_the_fault_of_the_stage(tmp_path, do):
    async with running(tmp_path, plans.chain(first=[deed(do)])) as it:
        error = await it.failure(it.client.run, "p", {"x": FLOAT})

        assert (error.reason, error.code.name) == ("OUTPUT_CONTRACT", "INTERNAL")
        assert "one" in error.message
        await it.run("p2", {"x": FLOAT})


async def test_an_executor_that_raises_fails_one_request_and_says_nothing_of_why(
    tmp_path,
):
    async with running(tmp_path, plans.single(deed("raise"))) as it:
        error = await it.failure(it.client.run, "p", {"x": FLOAT})

        assert (error.reason, error.code.name) == ("STAGE_FAULT", "INTERNAL")
        assert "library" not in error.message
        assert "secret" not in error.message
        log = tmp_path / "state/logs/a.log"
        # What the client is told leads to the cause in the log.
        await until(lambda: error.facts["error_id"] in log.read_text())
        assert "secret" in log.read_text()
        assert it.incarnation("a") == 1


async def test_an_executor_that_refuses_an_input_says_so_in_its_own_words(tmp_path):
    async with running(tmp_path, plans.single(deed("refuse"))) as it:
        error = await it.failure(it.client.run, "p", {"x": FLOAT})

        assert error.reason == "STAGE_FAULT"
        assert "refuses its input" in error.message


async def test_a_chunk_over_its_limit_is_refused_and_harms_no_worker(tmp_path):
    async with running(tmp_path, PLAN) as it:
        for size in (CHUNK_BYTES + 1, MESSAGE_BYTES, MESSAGE_BYTES + 60_000):
            item = tensor_pb2.Item(
                port="x",
                tensor=tensor_pb2.TensorDescriptor(
                    data_type=12, shape=[4_000_000], size_bytes=16_000_000
                ),
                payload_size_bytes=size,
                checksum=0,
            )
            message = frame.join(pb.InferRequest(item=item).SerializeToString(), [bytes(size)])

            error = await it.failure(infer, it, opening(), message)

            assert error.reason == "MESSAGE_TOO_BIG"
        await answers_still(it)
        assert it.attached("a").incarnation == 1


async def test_a_unary_message_as_large_as_allowed_reaches_its_worker(tmp_path):
    async with running(tmp_path, PLAN) as it:
        value = np.ones((MESSAGE_BYTES - 100) // 4, np.float32)
        result = await it.run("p", {"x": value[:400_000]})
        assert np.array_equal(result.outputs["y"][0], value[:400_000])

        # Too much for one answer, and no harm on the way to the worker.
        chunk = next(iter(to_chunks("x", 0, value)))
        chunk.item.payload_size_bytes = value.nbytes
        message = pb.RunRequest(open=pb.InferOpen(pipeline="p"), items=[chunk.item])
        error = await it.failure(
            run, it, frame.join(message.SerializeToString(), [memoryview(value).cast("B")])
        )

        assert error.reason in ("MESSAGE_TOO_BIG", "PAYLOAD_CORRUPT", "OUTPUT_CONTRACT")
        await answers_still(it)
        assert it.attached("a").incarnation == 1


async def test_a_client_that_opens_nothing_does_not_hold_its_call(tmp_path):
    service = CoordinatorService(None, None, open_seconds=0.05)

    async def silence():
        await asyncio.Event().wait()
        yield b""

    with pytest.raises(FieldInvalidError, match="open"):
        await anext(service.infer(silence(), None))
