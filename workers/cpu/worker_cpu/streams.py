"""Rules about items of ports that several executors share."""

from stagewire.errors import TensorMismatchError
from stagewire.tensor import Value
from stagewire.worker.executor import Execution, StageOrder


def check_streams(order: StageOrder) -> None:
    """Checks that every output of a stage is a stream where an input is one.

    Raises:
        TensorMismatchError: one is not.
    """
    if any(port.is_stream for port in order.inputs):
        for port in order.outputs:
            if not port.is_stream:
                raise TensorMismatchError(
                    f"stage {order.stage_id}: output {port.name!r} must be a stream,"
                    " because an input is one",
                    stage=order.stage_id,
                    port=port.name,
                )


def receive_one(execution: Execution, port: str) -> Value:
    """Returns the item of a port that is no stream.

    Raises:
        TensorMismatchError: it ended without one.
    """
    value = execution.receive(port)
    if value is None:
        raise TensorMismatchError(f"port {port!r} ended without an item", port=port)
    return value
