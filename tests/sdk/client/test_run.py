"""`run` and `connect` of both clients against a real server."""

import numpy as np
import pytest

from stagewire.endpoint import Endpoint, write_endpoint
from stagewire.errors import (
    CoordinatorUnreachableError,
    DeadlineExceededError,
    FieldInvalidError,
    LaneFullError,
    MessageTooBigError,
    PathForbiddenError,
    PayloadCorruptError,
    PipelineUnknownError,
    TokenInvalidError,
)
from stagewire.limits import INLINE_BYTES, MESSAGE_BYTES, TENSOR_BYTES

pytestmark = pytest.mark.integration

SECONDS = 60


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.float32(1.5),
        np.empty((0, 4)),
        np.arange(INLINE_BYTES, dtype=np.int32),
        "añ",
        b"\0\1",
        np.array(["a", "b"], object),
    ],
)
def test_a_value_goes_there_and_back(client, value):
    result = client.run("echo", {"a": value}, timeout=SECONDS)
    back = result.output("a")
    assert np.array_equal(back, value)
    assert np.shape(back) == np.shape(value)
    assert result.outputs.keys() == {"a"}


def test_several_inputs_share_one_message(client, server):
    inputs = {"a": np.arange(100_000, dtype=np.float32), "b": "text", "c": b""}
    result = client.run("echo", inputs, timeout=SECONDS)
    assert np.array_equal(result.output("a"), inputs["a"])
    assert result.text("b") == "text"
    assert result.output("c") == b""
    assert server.seen == ["run"]


def test_request_id_and_wanted_outputs_are_passed_on(client, server):
    result = client.run("echo", {"a": "x"}, request_id="mine", outputs=["a", "b"], timeout=SECONDS)
    assert result.receipt.request_id == "mine"
    assert server.openings[0].request_id == "mine"
    assert list(server.openings[0].outputs) == ["a", "b"]


@pytest.mark.parametrize("size", [MESSAGE_BYTES, 3 * MESSAGE_BYTES + 7])
def test_inputs_over_one_message_go_in_chunks(client, server, size):
    value = np.arange(size, dtype=np.uint8)
    result = client.run("echo", {"a": value, "b": "text"}, timeout=SECONDS, request_id="mine")
    assert np.array_equal(result.output("a"), value)
    assert result.text("b") == "text"
    assert result.receipt.request_id == "mine"
    assert "run" not in server.seen


def test_the_largest_message_still_goes_at_once(client, server):
    value = np.zeros(MESSAGE_BYTES - 100, np.uint8)
    client.run("echo", {"a": value}, timeout=SECONDS)
    assert server.seen == ["run"]


def test_an_input_that_was_left_out_is_ended(client):
    value = np.zeros(2 * MESSAGE_BYTES, np.uint8)
    result = client.run("echo", {"b": value}, timeout=SECONDS)
    assert result.items("a") == []
    assert result.output("b").nbytes == value.nbytes


def test_a_value_over_the_limit_is_refused_before_anything_is_sent(client, server):
    with pytest.raises(MessageTooBigError):
        client.run("echo", {"a": np.broadcast_to(np.uint8(0), (TENSOR_BYTES + 1,))})
    assert server.openings == []


def test_a_value_without_wire_type_is_refused(client):
    with pytest.raises(FieldInvalidError, match="dict"):
        client.run("echo", {"a": {}})


def test_a_failure_of_the_server_arrives_typed(client):
    with pytest.raises(PipelineUnknownError) as failure:
        client.run("nothing", {}, timeout=SECONDS)
    assert failure.value.facts == {"pipeline": "nothing"}
    with pytest.raises(LaneFullError) as failure:
        client.run("full", {}, timeout=SECONDS)
    assert failure.value.retry_delay_ms == 40


def test_the_deadline_ends_the_request(client, server):
    with pytest.raises(DeadlineExceededError):
        client.run("stuck", {}, timeout=0.3)
    assert server.cancelled.wait(SECONDS)


def test_a_damaged_answer_is_corrupt(client):
    with pytest.raises(PayloadCorruptError):
        client.run("damaged", {"a": "abc"}, timeout=SECONDS)


def test_a_wrong_token_is_refused(make_client, server):
    with make_client(server.address, "wrong") as client, pytest.raises(TokenInvalidError):
        client.run("echo", {}, timeout=SECONDS)


def test_nobody_there_is_said_so(make_client):
    with make_client("127.0.0.1:1", "x") as client, pytest.raises(CoordinatorUnreachableError):
        client.run("echo", {}, timeout=SECONDS)


# --- connect ---


def write(folder, server, plan="voice"):
    return write_endpoint(folder, Endpoint(server.address, server.token, "", "", 1, plan))


def test_connect_follows_the_endpoint_file(make_connected, tmp_path, server):
    write(tmp_path, server)
    with make_connected(tmp_path, plan="voice") as client:
        assert client.run("echo", {"a": "x"}, timeout=SECONDS).text("a") == "x"


def test_connect_looks_in_the_state_folder_of_the_user(
    make_connected, tmp_path, monkeypatch, server
):
    monkeypatch.setenv("STAGEWIRE_STATE", str(tmp_path))
    write(tmp_path, server)
    with make_connected() as client:
        assert client.run("echo", {"a": "x"}, timeout=SECONDS).text("a") == "x"


def test_connect_refuses_another_plan_and_names_both(make_connected, tmp_path, server):
    write(tmp_path, server)
    with pytest.raises(CoordinatorUnreachableError, match="'voice', not 'vision'"):
        make_connected(tmp_path, plan="vision")


def test_connect_refuses_a_file_that_others_can_read(make_connected, tmp_path, server):
    write(tmp_path, server).chmod(0o644)
    with pytest.raises(PathForbiddenError):
        make_connected(tmp_path)


def test_connect_without_a_coordinator_says_how_to_start_one(make_connected, tmp_path):
    with pytest.raises(CoordinatorUnreachableError, match="coordinator up"):
        make_connected(tmp_path)
