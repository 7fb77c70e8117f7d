"""`Client.placement` and `Client.watch` against a real server."""

import pytest
from google.protobuf.duration_pb2 import Duration

from stagewire.client import (
    ConstraintState,
    Grade,
    Phase,
    PipelineState,
    ReservationState,
    StageState,
    Verdict,
    WorkerState,
)
from stagewire.errors import (
    CoordinatorUnreachableError,
    DeadlineExceededError,
    FieldInvalidError,
    TokenInvalidError,
)
from stagewire.ports import Dimension, Port
from stagewire.tensor import DataType
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import tensor_pb2

pytestmark = pytest.mark.integration

SECONDS = 60


def make_state(phase=pb.PHASE_READY):
    return pb.CoordinatorState(
        plan_name="voice",
        phase=phase,
        workers=[
            pb.WorkerState(
                worker_id="cpu",
                kind="cpu",
                incarnation=3,
                phase=phase,
                restarts=2,
                last_reason="WORKER_LOST",
                reserved_bytes=10,
                measured_bytes=8,
                peak_bytes=9,
            )
        ],
        stages=[
            pb.StageState(
                stage_id="hear",
                worker_id="cpu",
                device="cpu",
                executor="whisper",
                phase=phase,
                verdict=6,
                grade=3,
                evidence="ran its example",
                reserved_bytes=5,
                measured_bytes=4,
                load_duration=Duration(seconds=2),
                placement_reason="required",
            )
        ],
        pipelines=[
            pb.PipelineState(
                pipeline="voice",
                inputs=[
                    tensor_pb2.PortType(
                        name="audio",
                        data_type=12,
                        dimensions=[tensor_pb2.Dimension(name="samples", max_extent=9)],
                        is_stream=True,
                    )
                ],
                outputs=[tensor_pb2.PortType(name="text", data_type=14)],
                is_ready=True,
            )
        ],
        ledger=pb.LedgerState(
            constraints=[
                pb.ConstraintState(
                    constraint="machine:ram", limit_bytes=100, reserved_bytes=15, grade=2
                )
            ],
            reservations=[
                pb.ReservationState(
                    owner="stage:hear", lifetime="resident", size_bytes=5, measured_bytes=0, grade=1
                ),
                pb.ReservationState(owner="worker:cpu", lifetime="load", size_bytes=1, grade=1),
            ],
        ),
    )


def test_the_placement_is_read_whole(client, server):
    server.state = make_state()
    state = client.placement(timeout=SECONDS)
    assert (state.plan_name, state.phase) == ("voice", Phase.READY)
    assert state.workers == (WorkerState("cpu", "cpu", 3, Phase.READY, 2, "WORKER_LOST", 10, 8, 9),)
    assert state.stages == (
        StageState(
            *("hear", "cpu", "cpu", "whisper", Phase.READY, Verdict.FULL, Grade.B),
            *("ran its example", 5, 4, 2.0, "required"),
        ),
    )
    assert state.pipelines == (
        PipelineState(
            "voice",
            (Port("audio", DataType.FLOAT32, (Dimension("samples", 9),), is_stream=True),),
            (Port("text", DataType.UTF8),),
            is_ready=True,
        ),
    )
    assert state.ledger.constraints == (ConstraintState("machine:ram", 100, 15, Grade.D),)
    assert state.ledger.reservations == (
        ReservationState("stage:hear", "resident", 5, 0, Grade.E),
        ReservationState("worker:cpu", "load", 1, None, Grade.E),
    )


def test_the_phases_are_those_of_the_wire():
    expected = {name.removeprefix("PHASE_"): number for name, number in pb.Phase.items()}
    expected["UNKNOWN"] = expected.pop("UNSPECIFIED")
    assert {phase.name: phase.value for phase in Phase} == expected


def test_an_empty_state_can_be_read(client):
    state = client.placement(timeout=SECONDS)
    assert state.phase is Phase.UNKNOWN
    assert state.stages == ()


def test_a_port_of_a_newer_version_is_refused(client, server):
    server.state = make_state()
    server.state.pipelines[0].inputs[0].data_type = 77
    with pytest.raises(FieldInvalidError):
        client.placement(timeout=SECONDS)


def test_watching_gives_the_state_and_every_change(client, server):
    server.state = make_state(pb.PHASE_STARTING)
    server.changes = [make_state(pb.PHASE_READY), make_state(pb.PHASE_DRAINING)]
    states = client.watch(timeout=SECONDS)
    assert [next(states).phase for _ in range(3)] == [
        Phase.STARTING,
        Phase.READY,
        Phase.DRAINING,
    ]
    states.close()
    assert server.cancelled.wait(SECONDS)


def test_watching_ends_with_its_deadline(client):
    with pytest.raises(DeadlineExceededError):
        list(client.watch(timeout=0.3))


def test_both_need_the_token_and_a_coordinator(make_client, server):
    with make_client(server.address, "wrong") as client:
        with pytest.raises(TokenInvalidError):
            client.placement(timeout=SECONDS)
        with pytest.raises(TokenInvalidError):
            next(client.watch(timeout=SECONDS))
    with make_client("127.0.0.1:1", "x") as client:
        with pytest.raises(CoordinatorUnreachableError):
            client.placement(timeout=SECONDS)
        with pytest.raises(CoordinatorUnreachableError):
            next(client.watch(timeout=SECONDS))
