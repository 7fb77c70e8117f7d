"""Times and numbers as callers give them: exact, or refused with a word on what is wrong."""

import inspect
import math

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from stagewire.client import Client, write_wav
from stagewire.client.call import Call
from stagewire.client.given import check_seconds, typed
from stagewire.errors import (
    DeadlineExceededError,
    FieldInvalidError,
    MediaInvalidError,
    PipelineUnknownError,
    StageError,
    TensorMismatchError,
)
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType, encode
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import tensor_pb2

pytestmark = pytest.mark.integration

SECONDS = 60
NO_TIMES = [
    -1,
    0,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    10**400,
    1e12,
    True,
    "5",
    np.float32("nan"),
    np.int64(-1),
]
INTEGERS = [item for item in DataType if item.name.startswith(("INT", "UINT"))]
FLOATS = [DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64]
EIGHT_BITS = [DataType.FLOAT8_E4M3FN, DataType.FLOAT8_E5M2]
ROW = (Dimension("n", 8),)


def port(data_type, dimensions=()):
    return Port("x", data_type, dimensions)


def refusal(data_type, value, dimensions=()):
    with pytest.raises(TensorMismatchError) as caught:
        typed(port(data_type, dimensions), value)
    assert caught.value.facts == {"port": "x"}
    assert "port 'x' takes" in caught.value.message
    assert data_type.spelling in caught.value.message
    return caught.value.message


# --- times ---


@pytest.fixture
def uses(client, tmp_path):
    """Every function of the public client that takes a time."""

    def watch(**named):
        return next(client.watch(**named))

    return {
        "run": lambda **named: client.run("echo", {"a": "x"}, **named),
        "infer": lambda **named: client.infer("echo", **named),
        "placement": client.placement,
        "watch": watch,
    }


@pytest.mark.parametrize("value", NO_TIMES, ids=lambda value: repr(value)[:12])
@pytest.mark.parametrize("name", ["run", "infer", "placement", "watch"])
def test_what_is_no_time_is_refused_by_name_before_anything_is_sent(server, uses, name, value):
    with pytest.raises(FieldInvalidError) as caught:
        uses[name](timeout=value)

    assert caught.value.message.startswith("timeout is ")
    assert caught.value.facts == {"field": "timeout"}
    assert server.seen == server.openings == []


def test_watching_without_a_time_to_wait_for_is_refused_before_the_first_step(client):
    with pytest.raises(FieldInvalidError, match="timeout"):
        client.watch(timeout=-1)


def test_no_function_of_the_client_takes_a_time_that_is_not_tried_above(uses):
    takes = {
        name
        for kind in (Client, Call)
        for name, function in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_") and "timeout" in inspect.signature(function).parameters
    }
    assert takes == set(uses)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.int64(3), 365 * 86400, None])
def test_what_is_a_time_passes(value):
    assert check_seconds("timeout", value) == value


@pytest.mark.parametrize("rate", [np.asarray(16000, np.int32), 16000.0, np.int64(16000), 16000])
def test_a_rate_is_a_whole_number_of_any_type(tmp_path, rate):
    write_wav(tmp_path / "a.wav", np.zeros(4, np.float32), rate)


@pytest.mark.parametrize(
    "rate",
    [math.nan, math.inf, 22_050.5, "22050", True, None, 0, -1, 10**5000, [1, 2]],
    ids=lambda rate: type(rate).__name__,
)
def test_whatever_else_is_no_rate(tmp_path, rate):
    with pytest.raises(MediaInvalidError, match="rate"):
        write_wav(tmp_path / "a.wav", np.zeros(4, np.float32), rate)
    assert list(tmp_path.iterdir()) == []


# --- numbers ---


@pytest.mark.parametrize("data_type", INTEGERS)
def test_an_integer_port_takes_whole_numbers_within_its_bounds(data_type):
    import ml_dtypes

    bounds = ml_dtypes.iinfo(data_type.spelling)
    for value in (
        *(0, 3, 3.0, True, np.float64(7), np.float32(7), np.int8(7), np.uint64(7)),
        *(int(bounds.min), int(bounds.max)),
    ):
        made = typed(port(data_type), value)
        assert (made.dtype.name, made.shape, int(made)) == (data_type.spelling, (), int(value))
        assert encode(made)[0].data_type is data_type
    for value in (
        *(0.5, np.float32(1.5), math.nan, math.inf, 1e300),
        *(int(bounds.min) - 1, int(bounds.max) + 1, 10**5000),
    ):
        refusal(data_type, value)
    assert "300" in refusal(DataType.INT8, 300)
    assert "outside -128 to 127" in refusal(DataType.INT8, 300)
    assert "1.5, which is no whole number" in refusal(DataType.INT32, 1.5)


@pytest.mark.parametrize("data_type", FLOATS)
def test_a_float_port_takes_what_it_can_hold(data_type):
    for value in (0, 1, -2, 0.5, True, 96, np.float64(0.25), np.int16(4), math.inf, -math.inf):
        made = typed(port(data_type), value)
        descriptor, payload = encode(made)
        assert (descriptor.data_type, descriptor.shape) == (data_type, ())
        assert number_of(data_type, payload) == value
    assert math.isnan(number_of(data_type, encode(typed(port(data_type), math.nan))[1]))
    for value in (10**400, 2**64 + 1, 2**53 + 1):
        refusal(data_type, value)
    assert "it holds only as 16777216" in refusal(DataType.FLOAT32, 16_777_217)
    assert "too large" in refusal(DataType.FLOAT32, 1e300)
    assert "too large" in refusal(DataType.FLOAT16, 70_000)
    assert "too small" in refusal(DataType.FLOAT32, 1e-300)


@hypothesis_given(st.sampled_from(FLOATS + EIGHT_BITS), st.floats(-60000, 60000))
def test_a_fraction_becomes_the_nearest_number_that_the_port_holds(data_type, value):
    import ml_dtypes

    kind = getattr(ml_dtypes, data_type.spelling, data_type.spelling)
    if data_type is DataType.BFLOAT16:
        # The library goes by way of float32 and rounds twice.
        value = float(np.float32(value))
    nearest = float(np.asarray(value, kind))
    if math.isinf(nearest) or math.isnan(nearest):
        assert "too large" in refusal(data_type, value)
        return
    if nearest == 0 and value != 0:
        refusal(data_type, value)
    else:
        made = number_of(data_type, encode(typed(port(data_type), value))[1])
        assert made == nearest


@pytest.mark.parametrize("data_type", EIGHT_BITS)
def test_a_port_of_floats_of_eight_bits_takes_what_it_can_hold(data_type):
    for value in (0, 1, -2, 0.5, 96, 1.75, -0.015625):
        payload = encode(typed(port(data_type), value))[1]
        assert (payload.nbytes, number_of(data_type, payload)) == (1, value)
    assert math.isnan(number_of(data_type, encode(typed(port(data_type), math.nan))[1]))
    assert "it holds only as 16" in refusal(data_type, 17)
    assert "too small" in refusal(data_type, 1e-6)
    assert "too large" in refusal(data_type, 10**6)


def test_infinity_passes_only_where_the_port_has_it():
    made = typed(port(DataType.FLOAT8_E5M2), -math.inf)
    assert number_of(DataType.FLOAT8_E5M2, encode(made)[1]) == -math.inf
    assert "too large" in refusal(DataType.FLOAT8_E4M3FN, math.inf)


def number_of(data_type, payload):
    import ml_dtypes

    kind = getattr(ml_dtypes, data_type.spelling, data_type.spelling)
    return float(np.frombuffer(payload, kind)[0])


def test_a_bool_port_takes_true_false_and_what_equals_them():
    for value in (True, False, 1, 0, 1.0, np.bool_(True), np.int64(0)):
        made = typed(port(DataType.BOOL), value)
        assert (made.dtype, bool(made)) == (np.bool_, bool(value))
    for value in (2, 0.5, -1, math.nan):
        assert "neither true nor false" in refusal(DataType.BOOL, value)


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (DataType.INT64, [1, 2.0, True, np.int8(3)]),
        (DataType.FLOAT32, (0.5, 2)),
        (DataType.FLOAT64, []),
        (DataType.BFLOAT16, [1, 0.5]),
        (DataType.FLOAT8_E4M3FN, [1, 0.5, 448]),
        (DataType.INT4, [-8, 7, 0]),
        (DataType.UINT4, [15.0]),
        (DataType.BOOL, [True, 0]),
        (DataType.UTF8, ["a", ""]),
        (DataType.BYTES, [b"a"]),
    ],
)
def test_a_row_of_numbers_or_strings_is_an_array_of_one_dimension(data_type, value):
    descriptor, _ = encode(typed(port(data_type, ROW), value))
    port(data_type, ROW).check(descriptor)
    assert descriptor.shape == (len(value),)


@pytest.mark.parametrize(
    ("data_type", "dimensions", "value", "says"),
    [
        (DataType.INT32, ROW, [1, 2.5], "2.5, which is no whole number"),
        (DataType.INT32, ROW, [1, "2"], "'2', which is no number"),
        (DataType.INT32, ROW, [[1], [2]], "[1], which is no number"),
        (DataType.INT32, ROW, 3, "the single number 3"),
        (DataType.INT32, (), [3], "a list"),
        (DataType.FLOAT32, (*ROW, *ROW), [[1.0]], "numpy array"),
        (DataType.UTF8, (), 3, "3, which is no str"),
        (DataType.UTF8, ROW, ["a", b"b"], "b'b', which is no str"),
        (DataType.BYTES, ROW, ["a"], "'a', which is no bytes"),
        (DataType.FLOAT32, (), np.longdouble(1) / 3, None),
    ],
)
def test_what_a_port_cannot_take_is_said_with_port_type_and_value(
    data_type, dimensions, value, says
):
    if says is None:
        with pytest.raises(FieldInvalidError):
            typed(port(data_type, dimensions), value)
        return
    assert says in refusal(data_type, value, dimensions)


def test_a_number_of_numpy_that_has_the_type_of_its_port_keeps_every_bit():
    value = np.uint32(0x7FC00123).view(np.float32)
    assert bytes(encode(typed(port(DataType.FLOAT32), value))[1]) == value.tobytes()


# --- through a client ---


@pytest.fixture
def ported(server):
    """The server, with `a` as one int32 and `b` as a row of float32 in its state."""
    row = tensor_pb2.Dimension(name="n", max_extent=8)
    inputs = [
        tensor_pb2.PortType(name="a", data_type=tensor_pb2.DATA_TYPE_INT32),
        tensor_pb2.PortType(name="b", data_type=tensor_pb2.DATA_TYPE_FLOAT32, dimensions=[row]),
    ]
    for name in ("echo", "stuck"):
        server.state.pipelines.append(pb.PipelineState(pipeline=name, inputs=inputs))
    return server


def test_run_sends_numbers_as_their_ports_take_them(client, ported):
    result = client.run("echo", {"a": 16000, "b": [1, 0.5]}, timeout=SECONDS)

    assert (result.output("a").dtype, result.output("a").tolist()) == (np.int32, 16000)
    assert (result.output("b").dtype, result.output("b").tolist()) == (np.float32, [1, 0.5])
    assert client.run("echo", {"a": np.int64(5)}, timeout=SECONDS).output("a").dtype == np.int32


def test_a_large_run_takes_a_list_as_one_item_too(client, ported):
    big = np.zeros(2_000_000, np.float32)
    result = client.run("echo", {"b": [1.0, 2.0], "a": big}, timeout=SECONDS)
    assert [item.tolist() for item in result.items("b")] == [[1, 2]]


def test_infer_sends_numbers_as_their_ports_take_them(client, ported):
    sources = {"b": iter([[1, 2], np.ones(1, np.float32)])}
    with client.infer("echo", sources, timeout=SECONDS) as call:
        call.send("a", 1)
        call.send("a", True)
        with pytest.raises(TensorMismatchError, match=r"'a' takes int32 and got 0.5"):
            call.send("a", 0.5)
        call.end()
        got = {}
        for item in call:
            got.setdefault(item.port, []).append((item.value.dtype.name, item.value.tolist()))
    assert got == {
        "a": [("int32", 1), ("int32", 1)],
        "b": [("float32", [1.0, 2.0]), ("float32", [1.0])],
    }


def test_a_single_number_is_a_source_and_a_wrong_one_ends_the_call(client, ported):
    with client.infer("echo", {"a": 3}, timeout=SECONDS) as call:
        call.end()
        assert [item.value.tolist() for item in call] == [3]
    with (
        client.infer("echo", {"a": 3.5}, timeout=SECONDS) as call,
        pytest.raises(TensorMismatchError, match="'a' takes int32"),
    ):
        list(call)


def test_a_number_for_what_does_not_exist_is_refused_with_its_name(client, ported):
    with pytest.raises(PipelineUnknownError, match="nothing"):
        client.run("nothing", {"a": 1}, timeout=SECONDS)
    with pytest.raises(FieldInvalidError, match="no input 'c'; it has a, b"):
        client.run("echo", {"c": 1}, timeout=SECONDS)
    assert ported.openings == []


def test_a_value_that_is_no_number_either_is_refused(client, ported):
    for value in ({}, None, 1j, object()):
        with pytest.raises(StageError) as caught:
            client.run("echo", {"a": value}, timeout=SECONDS)
        assert caught.value.reason == "FIELD_INVALID"


def test_the_time_covers_the_question_about_ports_too(client, ported):
    with pytest.raises(DeadlineExceededError):
        client.run("stuck", {"a": 1}, timeout=0.5)
    assert ported.cancelled.wait(SECONDS)
