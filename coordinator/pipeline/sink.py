"""Where the outputs of a request go."""

from typing import TYPE_CHECKING, Protocol

from stagewire.errors import StageError
from stagewire.v1 import tensor_pb2

if TYPE_CHECKING:
    from coordinator.pipeline.request import RunningRequest


class OutputSink(Protocol):
    """Where the outputs of a request go; called on the loop, must not block."""

    def item(
        self, port: str, item: tensor_pb2.Item, payload: memoryview, *, is_whole: bool
    ) -> None:
        """One chunk of an output item; `payload` is the chunk's own."""

    def end(self, port: str, item_count: int) -> None:
        """No more items follow on an output port."""

    def input_credit(self, port: str, items: int, size_bytes: int) -> None:
        """An input port may be sent more."""

    def finished(self, request: "RunningRequest") -> None:
        """The request ended well; last."""

    def failed(self, error: StageError) -> None:
        """The request failed; last."""
