"""The receipt of a finished request: where each stage ran, what it took, what crossed each edge."""

from coordinator.pipeline.request import RunningRequest, StageRun
from stagewire.v1 import capability_pb2
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.wiretime import to_duration


def make_receipt(request: RunningRequest) -> pb.Receipt:
    """Returns the receipt of a request that ended well."""
    clock = request.clock
    receipt = pb.Receipt(
        request_id=request.request_id,
        total=to_duration((clock.ended or clock.accepted) - clock.accepted),
        stages=[_stage_receipt(run) for run in request.runs.values()],
        hops=[
            pb.HopReceipt(
                source=str(flow.source.origin),
                target=str(hop.target),
                transport="+".join(sorted(hop.transports)),
                items=hop.items,
                size_bytes=hop.size_bytes,
            )
            for flow in request.flows.values()
            for hop in flow.hops
        ],
    )
    if clock.first_output is not None:
        receipt.first_output.CopyFrom(to_duration(clock.first_output - clock.accepted))
    return receipt


def _stage_receipt(run: StageRun) -> pb.StageReceipt:
    host = run.host
    receipt = pb.StageReceipt(
        stage_id=host.stage_id,
        worker_id=host.worker_id,
        device=host.device,
        incarnation=host.attached.incarnation,
        verdict=capability_pb2.Verdict.Value(f"VERDICT_{host.verdict.name}"),
        grade=capability_pb2.Grade.Value(f"GRADE_{host.grade.name}"),
    )
    took = run.receipt
    if took is not None:
        receipt.queued.CopyFrom(took.queued)
        receipt.busy.CopyFrom(took.busy)
        receipt.total.CopyFrom(took.total)
        receipt.input_bytes = took.input_bytes
        receipt.output_bytes = took.output_bytes
        if took.HasField("first_output"):
            receipt.first_output.CopyFrom(took.first_output)
    return receipt
