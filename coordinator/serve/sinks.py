"""Where the outputs of a request wait for their client: bounded by the client's own credit."""

import asyncio
from collections import Counter, deque
from typing import Final

from coordinator.pipeline.receipt import make_receipt
from coordinator.pipeline.request import RunningRequest
from coordinator.pipeline.topology import Endpoint
from stagewire.errors import MessageTooBigError, StageError
from stagewire.frame import join
from stagewire.limits import MESSAGE_BYTES
from stagewire.v1 import coordinator_pb2 as pb
from stagewire.v1 import tensor_pb2

_ANSWER_BYTES: Final = MESSAGE_BYTES // 2
"""Largest payload of one answer: the other half of a message is left to receipts and headers."""


class StreamSink:
    """Outputs of an Infer call, as messages that wait to be written."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._filled = asyncio.Event()
        self._error: StageError | None = None
        self._has_ended = False

    def put(self, message: pb.InferResponse, payload: memoryview | None = None) -> None:
        """Queues one message."""
        pieces = () if payload is None else (payload,)
        self._waiting.append(join(message.SerializeToString(), pieces))
        self._filled.set()

    def item(
        self, port: str, item: tensor_pb2.Item, payload: memoryview, *, is_whole: bool
    ) -> None:
        """Queues one chunk; what waits is bounded by the credit of the client."""
        item.payload_offset_bytes = 0
        self.put(pb.InferResponse(item=item), payload)

    def end(self, port: str, item_count: int) -> None:
        """Queues the end of a port."""
        self.put(pb.InferResponse(end_of_output=pb.EndOfOutput(port=port, item_count=item_count)))

    def input_credit(self, port: str, items: int, size_bytes: int) -> None:
        """Queues credit for an input."""
        self.put(
            pb.InferResponse(
                input_credit=pb.InputCredit(port=port, items=items, size_bytes=size_bytes)
            )
        )

    def finished(self, request: RunningRequest) -> None:
        """Queues the summary; the last message."""
        self.put(pb.InferResponse(summary=pb.InferSummary(receipt=make_receipt(request))))
        self._has_ended = True

    def failed(self, error: StageError) -> None:
        """Notes the failure that ends the call once earlier messages were written."""
        self._error = error
        self._filled.set()

    async def next_message(self) -> bytes | None:
        """Waits for the next message; None after the summary.

        Raises:
            StageError: the request failed; items that were queued before come first.
        """
        while not self._waiting:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                return None
            self._filled.clear()
            await self._filled.wait()
        return self._waiting.popleft()


class UnarySink:
    """Outputs of a Run call, gathered until they fit into one answer or prove too large."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[RunningRequest] = asyncio.get_running_loop().create_future()
        self._request: RunningRequest | None = None
        self._kept: list[tuple[tensor_pb2.Item, memoryview]] = []
        self._size_bytes = 0
        self._unreturned: Counter[str] = Counter()
        """Bytes of the items that are not whole yet, by port."""

    def attach(self, request: RunningRequest) -> None:
        """Names the request, before any of its items come."""
        self._request = request

    def item(
        self, port: str, item: tensor_pb2.Item, payload: memoryview, *, is_whole: bool
    ) -> None:
        """Keeps one chunk; its credit goes back at once, what is kept has a limit of its own."""
        self._size_bytes += payload.nbytes
        if self._request is None or self._size_bytes > _ANSWER_BYTES:
            self._fail(
                MessageTooBigError(
                    f"the outputs exceed the {_ANSWER_BYTES} bytes of one answer; take them as they"
                    " come, with `infer`"
                )
            )
            return
        self._kept.append((item, payload))
        self._unreturned[port] += payload.nbytes
        if is_whole:
            self._request.give_back(Endpoint(None, port), 1, self._unreturned.pop(port))

    def end(self, port: str, item_count: int) -> None:
        """Needs nothing: the answer holds whole ports."""

    def input_credit(self, port: str, items: int, size_bytes: int) -> None:
        """Needs nothing: every input came with the call."""

    def finished(self, request: RunningRequest) -> None:
        """Completes the call."""
        if not self.ended.done():
            self.ended.set_result(request)

    def failed(self, error: StageError) -> None:
        """Fails the call."""
        if not self.ended.done():
            self.ended.set_exception(error)

    def answer(self, request: RunningRequest) -> bytes:
        """Returns the answer in wire form."""
        response = pb.RunResponse(summary=pb.InferSummary(receipt=make_receipt(request)))
        position = 0
        for item, payload in self._kept:
            item.payload_offset_bytes = position
            position += payload.nbytes
            response.items.append(item)
        return join(response.SerializeToString(), [payload for _, payload in self._kept])

    def _fail(self, error: StageError) -> None:
        if self._request is not None:
            self._request.fail(error)
