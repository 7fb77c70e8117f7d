"""Failures on the wire."""

import grpc
import pytest

from stagewire import status
from stagewire.errors import (
    CancelledError,
    Code,
    CoordinatorUnreachableError,
    DeadlineExceededError,
    Fault,
    InternalFaultError,
    MessageTooBigError,
    PlanInvalidError,
    Refusal,
    StageError,
    every_failure,
    failure_class,
)
from stagewire.limits import FAILURE_TEXT_BYTES
from stagewire.v1 import tensor_pb2 as pb

pytestmark = pytest.mark.unit


class EndedCall(grpc.RpcError):
    """What gRPC raises, as far as it is public."""

    def __init__(self, code, trailer=()):
        self._code = code
        self._trailer = trailer

    def code(self):
        return self._code

    def trailing_metadata(self):
        return self._trailer


def send_over_the_wire(error):
    return status.from_message(pb.Failure.FromString(status.to_message(error).SerializeToString()))


@pytest.mark.parametrize("cls", every_failure())
def test_every_failure_arrives_as_what_it_was(cls):
    error = cls("what to change: añ", retry_delay_ms=250, limit_bytes=7, constraint="machine:ram")
    for back in (
        send_over_the_wire(error),
        status.from_rpc_error(
            EndedCall(
                status.GRPC_CODES[cls.code],
                ((status.TRAILER, status.to_message(error).SerializeToString()),),
            )
        ),
    ):
        assert type(back) is cls
        assert back.message == error.message
        assert str(back) == error.message
        assert back.retry_delay_ms == 250
        assert back.facts == {"limit_bytes": "7", "constraint": "machine:ram"}


@pytest.mark.parametrize("cls", every_failure())
def test_every_failure_has_a_code_a_reason_and_advice_of_its_own(cls):
    assert issubclass(cls, (Refusal, Fault))
    assert cls.reason.isupper()
    assert cls.recovery
    assert failure_class(cls.reason) is cls


def test_every_code_is_one_of_grpc():
    assert {code.name for code in Code} <= {code.name for code in grpc.StatusCode}
    assert all(status.GRPC_CODES[code].name == code.name for code in Code)


def test_no_retry_delay_stays_none_and_zero_stays_zero():
    assert send_over_the_wire(StageError("x")).retry_delay_ms is None
    assert send_over_the_wire(MessageTooBigError("x", retry_delay_ms=0)).retry_delay_ms == 0


def test_a_reason_of_a_newer_version_keeps_its_text():
    back = status.from_message(pb.Failure(reason="OF_TOMORROW", message="change the lamp"))
    assert type(back) is InternalFaultError
    assert back.message == "change the lamp"


def test_a_text_that_is_not_unicode_still_arrives():
    back = send_over_the_wire(PlanInvalidError("a\ud800b", path="\udcff"))
    assert back.message == "a?b"
    assert back.facts == {"path": "?"}


def test_a_long_text_is_cut_between_characters():
    back = send_over_the_wire(PlanInvalidError("é" * FAILURE_TEXT_BYTES))
    assert back.message.endswith("é ...")
    assert len(back.message.encode()) <= FAILURE_TEXT_BYTES + 4


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineExceededError),
        (grpc.StatusCode.CANCELLED, CancelledError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, MessageTooBigError),
        (grpc.StatusCode.UNAVAILABLE, CoordinatorUnreachableError),
        (grpc.StatusCode.UNKNOWN, InternalFaultError),
        (grpc.StatusCode.UNIMPLEMENTED, InternalFaultError),
    ],
)
@pytest.mark.parametrize("trailer", [(), None, (("x", "y"),), ((status.TRAILER, b"\xff\xff"),)])
def test_a_call_that_grpc_ended_itself_is_typed_by_its_code(code, cls, trailer):
    assert type(status.from_rpc_error(EndedCall(code, trailer))) is cls
