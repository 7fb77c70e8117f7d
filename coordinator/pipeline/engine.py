"""Admission and bookkeeping of requests: who may start, how many wait, which ids were seen."""

import asyncio
import itertools
import secrets
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from coordinator.facts.ids import ExecutionId, PipelineId, RequestId, StageId
from coordinator.pipeline.hosted_stage import HostedStage
from coordinator.pipeline.request import RunningRequest
from coordinator.pipeline.sink import OutputSink
from coordinator.pipeline.topology import Topology
from stagewire.errors import (
    FieldInvalidError,
    LaneFullError,
    PipelineUnknownError,
    RequestDuplicateError,
    ShuttingDownError,
    StageError,
)
from stagewire.limits import ID_PATTERN, REMEMBERED_REQUESTS, REQUESTS, matches_id

_RETRY_MS = 200


class Hosts(Protocol):
    """Where the stages are at the moment."""

    def host_of(self, stage: StageId) -> HostedStage:
        """Returns the host of a ready stage.

        Raises:
            StageError: the stage is starting, failed or was never placed.
        """


@dataclass(frozen=True, slots=True)
class LaneLimit:
    """How many requests a stage takes at once: running and waiting."""

    concurrency: int
    queue: int


class Engine:
    """Runs the requests of one coordinator. Lives on its loop."""

    def __init__(
        self,
        topologies: Mapping[PipelineId, Topology],
        lanes: Mapping[StageId, LaneLimit],
        hosts: Hosts,
    ) -> None:
        self.topologies = topologies
        self._lanes = lanes
        self._hosts = hosts
        self._running: dict[RequestId, RunningRequest] = {}
        self._remembered: OrderedDict[RequestId, None] = OrderedDict()
        self._lane_use: Counter[StageId] = Counter()
        self._execution_ids = itertools.count(1)
        self._is_draining = False
        self._watchers: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> Iterable[RunningRequest]:
        """Requests that hold anything."""
        return self._running.values()

    def open(
        self,
        pipeline: str,
        sink: OutputSink,
        *,
        request_id: str = "",
        timeout_seconds: float | None = None,
        outputs: Iterable[str] = (),
    ) -> RunningRequest:
        """Admits a request, or refuses it before anything starts.

        Raises:
            StageError: the pipeline or an output is unknown, a stage is not ready, a lane is full,
                the id was used, or the coordinator is stopping.
        """
        if self._is_draining:
            raise ShuttingDownError("the coordinator is stopping; it takes no new requests")
        topology = self.topologies.get(PipelineId(pipeline))
        if topology is None:
            raise PipelineUnknownError(
                f"there is no pipeline of that name; the plan has {', '.join(self.topologies)}"
            )
        identity = self._admit_id(request_id)
        wanted = self._wanted(topology, outputs)
        hosts = {stage: self._hosts.host_of(stage) for stage in topology.stages}
        self._admit_lanes(topology)
        if timeout_seconds is None:
            # A caller that sets none and then sends nothing would hold its lanes for ever.
            timeout_seconds = sum(host.deadline_seconds for host in hosts.values())
        execution_ids = {stage: ExecutionId(next(self._execution_ids)) for stage in topology.stages}
        request = RunningRequest(
            identity,
            topology,
            hosts,
            execution_ids,
            sink,
            timeout_seconds=timeout_seconds,
            wanted=wanted,
        )
        self._running[identity] = request
        self._lane_use.update(topology.stages)
        watcher = asyncio.create_task(self._forget_when_settled(request))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return request

    async def drain(self, timeout_seconds: float) -> int:
        """Admits nothing new and waits for what runs; returns how many requests were cut short."""
        self._is_draining = True
        requests = list(self._running.values())
        if requests:
            await asyncio.wait([request.settled for request in requests], timeout=timeout_seconds)
        left = [request for request in requests if not request.settled.done()]
        self.fail_all(ShuttingDownError("the coordinator stopped before the request ended"))
        return len(left)

    def fail_all(self, error: StageError) -> None:
        """Ends every running request with a failure."""
        for request in list(self._running.values()):
            request.fail(error)

    def _admit_id(self, request_id: str) -> RequestId:
        if not request_id:
            return RequestId(f"r-{secrets.token_hex(8)}")
        if not matches_id(request_id):
            raise FieldInvalidError(f"a request id must match {ID_PATTERN}")
        identity = RequestId(request_id)
        if identity in self._running or identity in self._remembered:
            raise RequestDuplicateError(f"request {request_id!r} was sent before", id=request_id)
        return identity

    @staticmethod
    def _wanted(topology: Topology, outputs: Iterable[str]) -> frozenset[str]:
        known = [port.name for port in topology.outputs]
        wanted = frozenset(outputs) or frozenset(known)
        unknown = sorted(wanted.difference(known))
        if unknown:
            raise FieldInvalidError(
                f"pipeline {topology.pipeline!r} has no output {unknown[0]!r}; it has"
                f" {', '.join(known)}"
            )
        return wanted

    def _admit_lanes(self, topology: Topology) -> None:
        if len(self._running) >= REQUESTS:
            raise LaneFullError(
                f"{REQUESTS} requests are running, the most that are", retry_delay_ms=_RETRY_MS
            )
        for stage in topology.stages:
            limit = self._lanes[stage]
            if self._lane_use[stage] >= limit.concurrency + limit.queue:
                raise LaneFullError(
                    f"stage {stage!r} has {self._lane_use[stage]} requests, its plan allows"
                    f" {limit.concurrency} at once and {limit.queue} waiting",
                    retry_delay_ms=_RETRY_MS,
                    stage=stage,
                )

    async def _forget_when_settled(self, request: RunningRequest) -> None:
        await request.settled
        del self._running[request.request_id]
        self._lane_use.subtract(request.topology.stages)
        self._remembered[request.request_id] = None
        if len(self._remembered) > REMEMBERED_REQUESTS:
            self._remembered.popitem(last=False)
