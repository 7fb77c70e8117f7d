"""One life of a worker as the coordinator sees it: what it said, is asked, and its fence."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from coordinator.facts.ids import Incarnation, RequestId, StageId, WorkerId
from coordinator.gateway.events import ExecutionEvents
from stagewire.envelope import Waiting, take_envelope
from stagewire.errors import MessageTooBigError, StageError
from stagewire.limits import CONTROL_MESSAGE_BYTES
from stagewire.status import from_message
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Measurement:
    """Memory of a worker process as its last heartbeat said."""

    total_bytes: int
    peak_bytes: int


class Attached:
    """An attached incarnation. Fenced once: then nothing more is sent to it or taken from it."""

    def __init__(
        self,
        worker_id: WorkerId,
        incarnation: Incarnation,
        hello: pb.Hello,
        executing: Callable[[], frozenset[int]] | None = None,
    ) -> None:
        """Begins an incarnation; `executing` reads its record, where there is one."""
        self.worker_id = worker_id
        self.incarnation = incarnation
        self.hello = hello
        self.fence_reason: StageError | None = None
        self.heartbeat: pb.Heartbeat | None = None
        self.heartbeat_count = 0
        self.phases: dict[StageId, str] = {}
        self.executed: frozenset[RequestId] = frozenset()
        """Requests that the worker executed when it was fenced."""
        self.repeated_hellos = 0
        self._executing = executing
        self._requests: dict[int, RequestId] = {}
        self._orders: asyncio.Queue[pb.AttachResponse | None] = asyncio.Queue()
        self._answers: dict[tuple[str, str], asyncio.Future[pb.AttachRequest]] = {}
        self._executions: dict[int, ExecutionEvents] = {}
        self._outgoing: Waiting = deque()
        self._filled = asyncio.Event()

    @property
    def rows(self) -> tuple[capability_pb2.CapabilityRow, ...]:
        """What the worker said that it can execute."""
        return tuple(self.hello.capabilities)

    @property
    def measurement(self) -> Measurement | None:
        """Memory of the process; None before its first heartbeat."""
        if self.heartbeat is None:
            return None
        memory = self.heartbeat.memory
        return Measurement(memory.anonymous_pss_bytes + memory.model_file_bytes, memory.peak_bytes)

    def fence(self, reason: StageError) -> None:
        """Ends this incarnation for everybody who waits for it; later calls change nothing."""
        if self.fence_reason is not None:
            return
        self.fence_reason = reason
        # Where nothing tells them apart, each that it holds may be the one.
        running = self._requests if self._executing is None else self._executing()
        self.executed = frozenset(self._requests[it] for it in running if it in self._requests)
        self._orders.put_nowait(None)
        self._filled.set()
        for future in self._answers.values():
            if not future.done():
                future.set_exception(reason)
                # Nobody may be waiting any more; that is no lost failure, the fence has it.
                future.exception()
        executions, self._executions = self._executions, {}
        for events in executions.values():
            events.failed(reason)

    # --- orders ---

    async def load(self, order: pb.LoadStage) -> pb.StageLoaded:
        """Asks for a stage and waits for it.

        Raises:
            StageError: it could not be loaded, or the incarnation was fenced.
        """
        answer = await self._ask("load", order.stage_id, pb.AttachResponse(load_stage=order))
        return answer.stage_loaded

    async def prove(self, stage_id: str) -> pb.StageProved:
        """Asks for a proof and waits for it.

        Raises:
            StageError: the example did not run, or the incarnation was fenced.
        """
        answer = await self._ask(
            "prove", stage_id, pb.AttachResponse(prove_stage=pb.ProveStage(stage_id=stage_id))
        )
        return answer.stage_proved

    async def release(self, stage_id: str) -> pb.StageReleased:
        """Asks for a release and waits for it.

        Raises:
            StageError: the stage is not loaded, or the incarnation was fenced.
        """
        answer = await self._ask(
            "release",
            stage_id,
            pb.AttachResponse(release_stage=pb.ReleaseStage(stage_id=stage_id)),
        )
        return answer.stage_released

    async def release_session(self, session_id: str) -> pb.SessionReleased:
        """Asks every stage to drop what it keeps for a session, and waits for that.

        Raises:
            StageError: the incarnation was fenced.
        """
        release = pb.ReleaseSession(session_id=session_id)
        answer = await self._ask(
            "release session", session_id, pb.AttachResponse(release_session=release)
        )
        return answer.session_released

    async def drain(self, order: pb.Drain) -> None:
        """Asks to finish what was admitted and waits for that."""
        await self._ask("drain", "", pb.AttachResponse(drain=order))

    def order(self, message: pb.AttachResponse) -> None:
        """Sends one control message that has no answer."""
        if self.fence_reason is None:
            self._orders.put_nowait(message)

    async def next_order(self) -> pb.AttachResponse | None:
        """Waits for the next control message to send; None once fenced."""
        if self.fence_reason is not None:
            return None
        return await self._orders.get()

    async def _ask(self, verb: str, stage_id: str, message: pb.AttachResponse) -> pb.AttachRequest:
        if self.fence_reason is not None:
            raise self.fence_reason
        if message.ByteSize() > CONTROL_MESSAGE_BYTES:
            raise MessageTooBigError(
                f"the order to {verb} stage {stage_id!r} has {message.ByteSize()} bytes, the limit"
                f" is {CONTROL_MESSAGE_BYTES}; shorten its options, or its list of files",
                stage=stage_id,
            )
        future: asyncio.Future[pb.AttachRequest] = asyncio.get_running_loop().create_future()
        self._answers[verb, stage_id] = future
        self._orders.put_nowait(message)
        try:
            return await future
        finally:
            self._answers.pop((verb, stage_id), None)

    def take(self, message: pb.AttachRequest) -> None:
        """Takes one control message of the worker."""
        kind = message.WhichOneof("message")
        if kind == "heartbeat":
            self.heartbeat = message.heartbeat
            self.heartbeat_count += 1
        elif kind == "credit_grant":
            events = self._executions.get(message.credit_grant.execution_id)
            if events is not None:
                events.credit(message.credit_grant)
        elif kind == "execution_cancelled":
            ended = self._drop(message.execution_cancelled.execution_id)
            if ended is not None:
                ended.cancelled(message.execution_cancelled.freed_bytes)
        elif kind == "load_progress":
            progress = message.load_progress
            self.phases[StageId(progress.stage_id)] = progress.phase
        elif kind == "hello":
            self._note_hello()
        elif kind == "fault":
            self._fail_answers(message.fault)
        else:
            self._answer(kind, message)

    def _note_hello(self) -> None:
        """Counts a Hello after the first: it changes nothing, whoever sent it."""
        self.repeated_hellos += 1
        if self.repeated_hellos == 1:
            _log.warning("Hello repeated worker=%s; it is ignored", self.worker_id)

    def _answer(self, kind: str | None, message: pb.AttachRequest) -> None:
        verb, stage_id = {
            "stage_loaded": ("load", message.stage_loaded.stage_id),
            "stage_proved": ("prove", message.stage_proved.stage_id),
            "stage_released": ("release", message.stage_released.stage_id),
            "session_released": ("release session", message.session_released.session_id),
            "drained": ("drain", ""),
        }.get(kind or "", ("", ""))
        future = self._answers.get((verb, stage_id))
        if future is not None and not future.done():
            future.set_result(message)

    def _fail_answers(self, fault: pb.Fault) -> None:
        for verb in ("load", "prove", "release"):
            future = self._answers.get((verb, fault.stage_id))
            if future is not None and not future.done():
                future.set_exception(from_message(fault.failure))

    # --- executions ---

    def begin(self, execution_id: int, events: ExecutionEvents, start: pb.StartExecution) -> None:
        """Starts an execution.

        Raises:
            StageError: the incarnation was fenced.
        """
        if self.fence_reason is not None:
            raise self.fence_reason
        self._executions[execution_id] = events
        self._requests[execution_id] = RequestId(start.trace_id)
        self.send(pb.ExchangeMessage(execution_id=execution_id, start_execution=start))

    def cancel(self, execution_id: int) -> bool:
        """Asks for the end of an execution; returns whether its end is still to come."""
        if execution_id not in self._executions:
            return False
        self.order(
            pb.AttachResponse(cancel_execution=pb.CancelExecution(execution_id=execution_id))
        )
        return True

    def forget(self, execution_id: int) -> None:
        """Takes nothing more from an execution."""
        self._drop(execution_id)

    def _drop(self, execution_id: int) -> ExecutionEvents | None:
        self._requests.pop(execution_id, None)
        return self._executions.pop(execution_id, None)

    def send(self, message: pb.ExchangeMessage, payload: memoryview | None = None) -> None:
        """Queues one message for Exchange; its amount is bounded by the credit of its sender."""
        self._outgoing.append((message, payload))
        self._filled.set()

    async def next_envelope(self) -> bytes | None:
        """Waits for messages and returns as many as fit into one envelope; None once fenced."""
        await self._filled.wait()
        if self.fence_reason is not None:
            return None
        envelope = take_envelope(self._outgoing, pb.ExchangeResponse())
        if not self._outgoing:
            self._filled.clear()
        return envelope

    def exchange(self, envelope: pb.ExchangeRequest, payload: memoryview) -> None:
        """Takes one envelope of the worker and tells the owners of its executions."""
        for message in envelope.messages:
            events = self._executions.get(message.execution_id)
            if events is None or self.fence_reason is not None:
                continue
            kind = message.WhichOneof("message")
            if kind == "item":
                events.item(message.item, payload)
            elif kind == "end_of_port":
                events.end_of_port(message.end_of_port)
            elif kind == "execution_done":
                self.forget(message.execution_id)
                events.done(message.execution_done.receipt)
            elif kind == "execution_failed":
                self.forget(message.execution_id)
                events.failed(from_message(message.execution_failed.failure))
