"""Admission and bookkeeping of requests: who may start, how many wait, which ids were seen."""

import asyncio
import itertools
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from coordinator.facts.ids import ExecutionId, PipelineId, RequestId, StageId
from coordinator.gateway.incarnation import Attached
from coordinator.pipeline.known_ids import KnownIds
from coordinator.pipeline.request import RunningRequest
from coordinator.pipeline.session_keeper import Hosts, SessionKeeper
from coordinator.pipeline.sessions import Session
from coordinator.pipeline.sink import OutputSink
from coordinator.pipeline.suspects import Suspects
from coordinator.pipeline.topology import Topology
from stagewire.errors import (
    FieldInvalidError,
    LaneFullError,
    PipelineUnknownError,
    ShuttingDownError,
    StageError,
)
from stagewire.limits import ID_PATTERN, REQUESTS, matches_id

_RETRY_MS = 200


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
        self._ids = KnownIds()
        self.sessions = SessionKeeper(hosts, self._running)
        self._lane_use: Counter[StageId] = Counter()
        self._suspects = Suspects()
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
        session_id: str = "",
        attempt: int = 1,
        is_idempotent: bool = False,
    ) -> RunningRequest:
        """Admits a request, or refuses it before anything starts.

        Raises:
            StageError: the pipeline or an output is unknown, a stage is not ready, a lane is full,
                the id was used, the session cannot be, or the coordinator is stopping.
        """
        topology = self._topology(pipeline)
        identity = self._admit_id(request_id, attempt, is_idempotent)
        session = self.sessions.find(session_id, topology.pipeline)
        self._suspects.admit(identity, self._running)
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
            suspects=self._suspects,
            session_id=session_id,
        )
        self._running[identity] = request
        self._ids.begin(identity, attempt)
        if session is not None:
            self.sessions.begin(session, request)
        self._lane_use.update(topology.stages)
        watcher = asyncio.create_task(self._forget_when_settled(request))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)
        return request

    def open_session(self, pipeline: str, idle_seconds: float | None) -> Session[Attached]:
        """Opens a session: state that the stages of a pipeline keep between requests.

        Raises:
            StageError: the pipeline is unknown, a stage is not ready, the time is none, too many
                sessions are open, or the coordinator is stopping.
        """
        topology = self._topology(pipeline)
        return self.sessions.open(topology.pipeline, topology.stages, idle_seconds)

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

    def _topology(self, pipeline: str) -> Topology:
        if self._is_draining:
            raise ShuttingDownError("the coordinator is stopping; it takes no new requests")
        topology = self.topologies.get(PipelineId(pipeline))
        if topology is None:
            raise PipelineUnknownError(
                f"there is no pipeline of that name; the plan has {', '.join(self.topologies)}"
            )
        return topology

    def _admit_id(self, request_id: str, attempt: int, is_idempotent: bool) -> RequestId:
        if not request_id:
            return RequestId(f"r-{secrets.token_hex(8)}")
        if not matches_id(request_id):
            raise FieldInvalidError(f"a request id must match {ID_PATTERN}")
        identity = RequestId(request_id)
        self._ids.check(identity, attempt, is_idempotent=is_idempotent)
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
        if request.error is None:
            self._suspects.clear(request.request_id)
        self._lane_use.subtract(request.topology.stages)
        self._ids.end(request.request_id, has_failed=request.error is not None)
