"""One running request: routes items between client and stages, and ends exactly once."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from coordinator.facts.ids import ExecutionId, RequestId, StageId
from coordinator.pipeline.flow import Flow
from coordinator.pipeline.hosted_stage import HostedStage
from coordinator.pipeline.sink import OutputSink
from coordinator.pipeline.suspects import Suspects
from coordinator.pipeline.topology import Endpoint, Topology
from stagewire.chunks import payload_of
from stagewire.errors import (
    DeadlineExceededError,
    FieldInvalidError,
    OutputContractError,
    StageError,
)
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS
from stagewire.v1 import gateway_pb2, tensor_pb2
from stagewire.wiretime import to_duration, to_seconds


@dataclass(slots=True)
class StageRun:
    """One execution of one stage in a request; tells the request what its worker says."""

    request: "RunningRequest"
    host: HostedStage
    execution_id: ExecutionId
    is_started: bool = False
    has_ended: bool = False
    timer: asyncio.TimerHandle | None = None
    """Ends the request at the deadline of the stage, should its executor not stop by itself."""
    receipt: gateway_pb2.ExecutionReceipt | None = None

    def item(self, item: tensor_pb2.Item, payload: memoryview) -> None:
        """Takes one chunk of an output."""
        self.request.take(Endpoint(self.host.stage_id, item.port), item, payload)

    def end_of_port(self, message: gateway_pb2.EndOfPort) -> None:
        """Takes the end of an output."""
        self.request.take_end(Endpoint(self.host.stage_id, message.port), message.item_count)

    def credit(self, grant: gateway_pb2.CreditGrant) -> None:
        """Takes what the executor has finished with."""
        self.request.give_back(
            Endpoint(self.host.stage_id, grant.port), grant.items, grant.size_bytes
        )

    def done(self, receipt: gateway_pb2.ExecutionReceipt) -> None:
        """Takes a good end."""
        self.receipt = receipt
        self.host.history.note(to_seconds(receipt.busy))
        self.request.conclude(self, None)

    def failed(self, error: StageError) -> None:
        """Takes a failure; of a worker that is lost, whether this request may be the cause."""
        attached = self.host.attached
        if error is attached.fence_reason:
            error = self.request.suspects.judge(
                self.request.request_id, error, attached.incarnation, attached.executed
            )
        self.request.conclude(self, error)

    def cancelled(self, freed_bytes: int) -> None:
        """Takes the acknowledgement of a cancel."""
        self.request.freed_bytes += freed_bytes
        self.request.conclude(self, None)


@dataclass(slots=True)
class Clock:
    """Moments of a request, in seconds of the monotonic clock."""

    accepted: float = field(default_factory=time.monotonic)
    first_output: float | None = None
    ended: float | None = None


class RunningRequest:
    """A request between its acceptance and the moment when nothing of it is held any more."""

    def __init__(
        self,
        request_id: RequestId,
        topology: Topology,
        hosts: Mapping[StageId, HostedStage],
        execution_ids: Mapping[StageId, ExecutionId],
        sink: OutputSink,
        *,
        timeout_seconds: float | None,
        wanted: frozenset[str],
        suspects: Suspects,
        session_id: str = "",
    ) -> None:
        self.request_id = request_id
        self.session_id = session_id
        self.topology = topology
        self.suspects = suspects
        self.clock = Clock()
        self.freed_bytes = 0
        self.error: StageError | None = None
        self.settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sink = sink
        self._deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self.runs = {
            stage: StageRun(self, hosts[stage], execution_ids[stage]) for stage in topology.stages
        }
        self.flows = {
            endpoint: Flow(
                source,
                tuple(t for t in source.targets if t.stage is not None or t.port in wanted),
            )
            for endpoint, source in topology.sources.items()
        }
        self._feeders = {hop.target: flow for flow in self.flows.values() for hop in flow.hops}
        self._timer: asyncio.TimerHandle | None = None
        if timeout_seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(timeout_seconds, self._expire)

    # --- items in ---

    def take(self, origin: Endpoint, item: tensor_pb2.Item, payload: memoryview) -> None:
        """Takes one chunk of a source and passes it on to every target."""
        if self.clock.ended is not None:
            return
        flow = self.flows.get(origin)
        if flow is None:
            self.fail(self._unknown(origin))
            return
        try:
            piece = payload_of(item, payload)
            is_whole = flow.accept(item)
        except StageError as error:
            self.fail(self._blame(origin, error))
            return
        for hop in flow.open_hops:
            self._deliver(hop.target, item, piece, is_whole)
        if is_whole and next(flow.open_hops, None) is None:
            self._grant(origin, *flow.take_credit())

    def take_end(self, origin: Endpoint, item_count: int | None) -> None:
        """Ends a source and passes the end on to every target."""
        flow = self.flows.get(origin)
        if self.clock.ended is not None or (flow is not None and flow.has_ended):
            return
        if flow is None:
            self.fail(self._unknown(origin))
            return
        problem = flow.end(item_count)
        if problem is not None:
            self.fail(self._blame(origin, problem))
            return
        for hop in flow.open_hops:
            if hop.target.stage is None:
                self._sink.end(hop.target.port, hop.items)
                continue
            run = self._started(hop.target.stage)
            if run is not None:
                run.host.attached.send(
                    gateway_pb2.ExchangeMessage(
                        execution_id=run.execution_id,
                        end_of_port=gateway_pb2.EndOfPort(
                            port=hop.target.port, item_count=hop.items
                        ),
                    )
                )

    def end_inputs(self) -> None:
        """Ends every input of the pipeline that has not ended."""
        for endpoint in self.flows:
            if endpoint.stage is None:
                self.take_end(endpoint, None)

    @property
    def have_inputs_ended(self) -> bool:
        """Whether every input of the pipeline has ended."""
        return all(flow.has_ended for end, flow in self.flows.items() if end.stage is None)

    def give_back(self, target: Endpoint, items: int, size_bytes: int) -> None:
        """Notes that a consumer has finished with items, and lets the source send as many more."""
        if self.clock.ended is not None:
            return
        flow = self._feeders.get(target)
        if flow is None:
            self.fail(self._unknown_target(target))
            return
        try:
            grant = flow.finish_items(target, items, size_bytes)
        except StageError as error:
            self.fail(self._blame(target, error))
            return
        self._grant(flow.source.origin, *grant)

    # --- ends ---

    def fail(self, error: StageError) -> None:
        """Ends the request with a failure and cancels what runs; later calls change nothing."""
        if self.clock.ended is not None:
            return
        self.error = error
        self._end()
        for run in self.runs.values():
            # Ends the bookkeeping of a run here only when its worker holds nothing of it.
            if not (
                run.is_started and not run.has_ended and run.host.attached.cancel(run.execution_id)
            ):
                run.has_ended = True
        self._sink.failed(error)
        self._settle()

    def conclude(self, run: StageRun, error: StageError | None) -> None:
        """Notes the end of one execution."""
        run.has_ended = True
        if run.timer is not None:
            run.timer.cancel()
        if error is not None:
            self.fail(error)
        elif self.clock.ended is None:
            self._close_inputs(run)
            unended = [
                flow.source.origin
                for endpoint, flow in self.flows.items()
                if endpoint.stage == run.host.stage_id and not flow.has_ended
            ]
            if unended:
                self.fail(OutputContractError(f"{unended[0]} did not end with its stage"))
            elif all(other.has_ended for other in self.runs.values()):
                self._end()
                self._sink.finished(self)
        self._settle()

    def _close_inputs(self, run: StageRun) -> None:
        """Lets the sources of an execution that has ended go on without it."""
        for target, flow in self._feeders.items():
            if target.stage == run.host.stage_id:
                self._grant(flow.source.origin, *flow.close(target))

    def _end(self) -> None:
        self.clock.ended = time.monotonic()
        for timer in (self._timer, *(run.timer for run in self.runs.values())):
            if timer is not None:
                timer.cancel()

    def _settle(self) -> None:
        if (
            self.clock.ended is not None
            and not self.settled.done()
            and all(run.has_ended for run in self.runs.values())
        ):
            self.settled.set_result(None)

    def _expire(self) -> None:
        waiting = [str(stage) for stage, run in self.runs.items() if not run.has_ended]
        self.fail(
            DeadlineExceededError(
                f"the deadline passed; not finished: {', '.join(waiting)}", stages=len(waiting)
            )
        )

    def _overrun(self, run: StageRun) -> None:
        stage = run.host.stage_id
        self.fail(
            DeadlineExceededError(
                f"stage {stage!r} did not finish before its deadline", stage=stage
            )
        )

    # --- items out ---

    def _deliver(
        self, target: Endpoint, item: tensor_pb2.Item, piece: memoryview, is_whole: bool
    ) -> None:
        if target.stage is None:
            passed = tensor_pb2.Item()
            passed.CopyFrom(item)
            passed.port = target.port
            if self.clock.first_output is None:
                self.clock.first_output = time.monotonic()
            self._sink.item(target.port, passed, piece, is_whole=is_whole)
            return
        run = self._started(target.stage)
        if run is not None:
            message = gateway_pb2.ExchangeMessage(execution_id=run.execution_id)
            message.item.CopyFrom(item)
            message.item.port = target.port
            run.host.attached.send(message, piece)

    def _started(self, stage: StageId) -> StageRun | None:
        """Returns the run of a stage, starting it with its first item; None when that failed."""
        run = self.runs[stage]
        if run.has_ended or self.clock.ended is not None:
            return None
        if run.is_started:
            return run
        try:
            left = self._time_left(run)
            run.host.attached.begin(run.execution_id, run, self._start_message(run, left))
        except StageError as error:
            self.fail(error)
            return None
        run.is_started = True
        run.timer = asyncio.get_running_loop().call_later(left, self._overrun, run)
        return run

    def _time_left(self, run: StageRun) -> float:
        """Returns the time that a stage gets; it shrinks along the pipeline.

        Raises:
            DeadlineExceededError: it would not be enough.
        """
        left = run.host.deadline_seconds
        if self._deadline is not None:
            left = min(left, self._deadline - time.monotonic())
        quickest = run.host.history.quickest_seconds
        if left <= 0 or (quickest is not None and quickest > left):
            raise DeadlineExceededError(
                f"stage {run.host.stage_id!r} was not started: it takes {quickest or 0:.2f} s and"
                f" {max(left, 0):.2f} s are left",
                stage=run.host.stage_id,
            )
        return left

    def _start_message(self, run: StageRun, left: float) -> gateway_pb2.StartExecution:
        return gateway_pb2.StartExecution(
            stage_id=run.host.stage_id,
            time_left=to_duration(left),
            trace_id=self.request_id,
            session_id=self.session_id,
            credits=[
                gateway_pb2.CreditGrant(
                    port=source.origin.port, items=WINDOW_ITEMS, size_bytes=WINDOW_BYTES
                )
                for source in self.topology.outputs_of(run.host.stage_id)
            ],
        )

    def _grant(self, origin: Endpoint, items: int, size_bytes: int) -> None:
        """Gives a source what its consumers have finished with."""
        if items <= 0 and size_bytes <= 0:
            return
        if origin.stage is None:
            self._sink.input_credit(origin.port, items, size_bytes)
            return
        run = self.runs[origin.stage]
        run.host.attached.order(
            gateway_pb2.AttachResponse(
                credit_grant=gateway_pb2.CreditGrant(
                    execution_id=run.execution_id,
                    port=origin.port,
                    items=items,
                    size_bytes=size_bytes,
                )
            )
        )

    def _unknown(self, origin: Endpoint) -> StageError:
        if origin.stage is None:
            names = ", ".join(port.name for port in self.topology.inputs)
            return FieldInvalidError(
                f"pipeline {self.topology.pipeline!r} has no input {origin.port!r}; it has {names}"
            )
        return OutputContractError(f"there is no output {origin}")

    def _unknown_target(self, target: Endpoint) -> StageError:
        if target.stage is None:
            return FieldInvalidError(f"no output {target.port!r} is sent; no credit fits it")
        return OutputContractError(f"there is no input {target}", stage=str(target.stage))

    @staticmethod
    def _blame(origin: Endpoint, error: StageError) -> StageError:
        """Returns the failure of whoever sent an item: a client's own, or a stage's contract."""
        if origin.stage is None:
            return error
        return OutputContractError(f"{origin}: {error.message}", stage=str(origin.stage))
