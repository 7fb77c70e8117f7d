"""What the gateway tells whoever began an execution."""

from typing import Protocol

from stagewire.errors import StageError
from stagewire.v1 import gateway_pb2 as pb
from stagewire.v1 import tensor_pb2


class ExecutionEvents(Protocol):
    """What the gateway tells the owner of one execution; called on the loop, must not block."""

    def item(self, item: tensor_pb2.Item, payload: memoryview) -> None:
        """One chunk came; `payload` is the whole payload of its envelope."""

    def end_of_port(self, message: pb.EndOfPort) -> None:
        """No more items follow on an output port."""

    def credit(self, grant: pb.CreditGrant) -> None:
        """The executor has finished with items of an input port."""

    def done(self, receipt: pb.ExecutionReceipt) -> None:
        """The execution ended well; last."""

    def failed(self, error: StageError) -> None:
        """The execution failed, or its worker was lost; last."""

    def cancelled(self, freed_bytes: int) -> None:
        """A cancelled execution holds nothing any more; last."""
