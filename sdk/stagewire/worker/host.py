"""The host: the part of a worker that is the same for all executors.

One event loop moves messages; lanes and a loader thread compute. The process ends when the
coordinator ends Attach, closes standard input or dies.
"""

import asyncio
import concurrent.futures
import contextlib
import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Sequence

import grpc

from stagewire import WIRE_VERSION, status
from stagewire.credit import Credit
from stagewire.errors import StageError, StageNotResidentError
from stagewire.limits import TOMBSTONE_SECONDS
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_seconds
from stagewire.worker.attest import attest_distributions, thread_settings
from stagewire.worker.execution import LaneExecution
from stagewire.worker.executor import Executor
from stagewire.worker.link import ControlLink, ItemLink
from stagewire.worker.memory import MemoryUsage, make_meter
from stagewire.worker.outbox import Outbox
from stagewire.worker.stages import Stages
from stagewire.worker.start import Start, read_start

_log = logging.getLogger(__name__)


def main(executors: Sequence[Executor]) -> None:
    """Runs a worker until its coordinator lets it go; the last call of every main module."""
    start = read_start()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    code = 1
    try:
        code = asyncio.run(Host(executors, start).serve())
    except grpc.aio.AioRpcError as error:
        _log.error("attach ended: %s", status.from_rpc_error(error).message)
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: a library's own threads must not keep a worker whose coordinator is gone.
    os._exit(code)


class Host:
    """One incarnation of a worker."""

    def __init__(self, executors: Sequence[Executor], start: Start) -> None:
        self._executors = executors
        self._start = start
        self._meter = make_meter()
        self._usage = MemoryUsage(0, 0)
        self._peak_bytes = 0
        self._executions: dict[int, LaneExecution] = {}
        self._tombstones: dict[int, float] = {}
        self._loop_progress = 0
        self._is_leaving = False
        # Loads, proofs and releases are serial for the worker; measuring must not wait for them.
        self._loader = concurrent.futures.ThreadPoolExecutor(1, "loader")
        self._measurer = concurrent.futures.ThreadPoolExecutor(1, "measurer")
        self._orders: set[asyncio.Task[None]] = set()

    async def serve(self) -> int:
        """Attaches, works, and returns the exit code."""
        self._control = ControlLink(self._start.address)
        welcome = await self._control.greet(self._hello())
        self._outbox = Outbox(asyncio.get_running_loop())
        self._stages = Stages(self._executors, self._outbox, self._meter, self._note_ended)
        self._items = ItemLink(self._start.address, welcome.exchange_token, self._outbox)
        interval = to_seconds(welcome.heartbeat_interval)
        tasks = [
            asyncio.create_task(coroutine)
            for coroutine in (
                self._follow_orders(),
                self._control.send_all(),
                self._take_items(),
                self._items.send_all(),
                self._beat(interval),
            )
        ]
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        for task in done:
            error = task.exception()
            if error is not None and not self._is_leaving:
                _log.error("a connection ended: %r", error)
        with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):
            await self._control.close()
        return 0 if self._is_leaving else 1

    def _hello(self) -> pb.Hello:
        start = self._start
        return pb.Hello(
            wire_version=WIRE_VERSION,
            token=start.token,
            worker_id=start.worker_id,
            process=start.identity(),
            environment=capability_pb2.EnvironmentAttestation(
                interpreter=sys.executable,
                python_version=sys.version.split()[0],
                environment_key=start.environment_key,
                distributions=[
                    capability_pb2.DistributionAttestation(
                        name=name, version=version, record_sha256=digest
                    )
                    for name, (version, digest) in attest_distributions(start.distributions).items()
                ],
                thread_settings=[
                    capability_pb2.ThreadSetting(name=name, value=value)
                    for name, value in thread_settings().items()
                ],
            ),
            capabilities=[
                capability_pb2.CapabilityRow(
                    executor=row.executor,
                    device=row.device,
                    formats=row.formats,
                    functions=row.functions,
                    library_version=row.library_version,
                    unavailable_reason=row.unavailable_reason,
                )
                for executor in self._executors
                for row in executor.describe()
            ],
        )

    # --- orders ---

    async def _follow_orders(self) -> None:
        while (message := await self._control.next_order()) is not None:
            self._loop_progress += 1
            kind = message.WhichOneof("message")
            if kind == "load_stage":
                self._order(functools.partial(self._load, message.load_stage))
            elif kind == "prove_stage":
                self._order(functools.partial(self._stages.prove, message.prove_stage.stage_id))
            elif kind == "release_stage":
                self._order(functools.partial(self._stages.release, message.release_stage.stage_id))
            elif kind == "cancel_execution":
                self._cancel(message.cancel_execution.execution_id)
            elif kind == "credit_grant":
                grant = message.credit_grant
                execution = self._executions.get(grant.execution_id)
                if execution is not None:
                    execution.grant(grant.port, grant.items, grant.size_bytes)
            elif kind == "drain":
                self._order(self._drain)
            elif kind == "shutdown":
                break
        self._is_leaving = True

    def _order(self, work: Callable[[], pb.AttachRequest]) -> None:
        """Carries out one order on the loader thread, in turn, and answers it."""

        async def carry_out() -> None:
            loop = asyncio.get_running_loop()
            self._control.put(await loop.run_in_executor(self._loader, work))

        task = asyncio.create_task(carry_out())
        self._orders.add(task)
        task.add_done_callback(self._orders.discard)

    def _load(self, order: pb.LoadStage) -> pb.AttachRequest:
        def report(phase: str) -> None:
            self._control.put_threadsafe(
                pb.AttachRequest(
                    load_progress=pb.LoadProgress(stage_id=order.stage_id, phase=phase)
                )
            )

        return self._stages.load(order, report)

    def _drain(self) -> pb.AttachRequest:
        # Nothing new is admitted by the coordinator; what runs is on the lanes and ends by itself.
        while self._executions:
            time.sleep(0.01)
        return pb.AttachRequest(drained=pb.Drained())

    # --- items ---

    async def _take_items(self) -> None:
        while (received := await self._items.next_envelope()) is not None:
            self._loop_progress += 1
            envelope, payload = received
            for message in envelope.messages:
                try:
                    self._take(message, payload)
                except StageError as error:
                    self._fail(message.execution_id, error)

    def _take(self, message: pb.ExchangeMessage, payload: memoryview) -> None:
        kind = message.WhichOneof("message")
        if kind == "start_execution":
            self._begin(message.execution_id, message.start_execution)
            return
        execution = self._executions.get(message.execution_id)
        if execution is None:
            # Items of an execution that failed or was cancelled may still be under way.
            return
        if kind == "item":
            execution.push(message.item, payload)
        elif kind == "end_of_port":
            execution.end(message.end_of_port.port)

    def _begin(self, execution_id: int, start: pb.StartExecution) -> None:
        if self._tombstones.pop(execution_id, None) is not None:
            self._acknowledge_cancel(execution_id, 0)
            return
        lane = self._stages.lanes.get(start.stage_id)
        if lane is None:
            raise StageNotResidentError(f"stage {start.stage_id!r} is not loaded")
        deadline = None
        if start.HasField("time_left"):
            deadline = time.monotonic() + to_seconds(start.time_left)
        execution = LaneExecution(
            execution_id,
            self._stages.orders[start.stage_id],
            deadline=deadline,
            credits={grant.port: Credit(grant.items, grant.size_bytes) for grant in start.credits},
            outbox=self._outbox,
            acknowledge=self._acknowledge,
            note_progress=lane.note_progress,
        )
        self._executions[execution_id] = execution
        lane.put(execution)

    def _fail(self, execution_id: int, error: StageError) -> None:
        execution = self._executions.pop(execution_id, None)
        if execution is not None:
            execution.cancel()
        self._outbox.put(
            pb.ExchangeMessage(
                execution_id=execution_id,
                execution_failed=pb.ExecutionFailed(failure=status.to_message(error)),
            )
        )

    def _acknowledge(self, execution_id: int, port: str, items: int, size_bytes: int) -> None:
        self._control.put_threadsafe(
            pb.AttachRequest(
                credit_grant=pb.CreditGrant(
                    execution_id=execution_id, port=port, items=items, size_bytes=size_bytes
                )
            )
        )

    def _cancel(self, execution_id: int) -> None:
        execution = self._executions.get(execution_id)
        if execution is not None:
            execution.cancel()
            lane = self._stages.lanes.get(execution.stage_id)
            # One that waits in the queue would hold its inputs until those before it have ended.
            if lane is not None and lane.withdraw(execution):
                self._note_ended(execution, execution.drop_inputs())
            return
        now = time.monotonic()
        self._tombstones = {key: until for key, until in self._tombstones.items() if until > now}
        self._tombstones[execution_id] = now + TOMBSTONE_SECONDS

    def _note_ended(self, execution: LaneExecution, freed_bytes: int) -> None:
        was_known = self._executions.pop(execution.execution_id, None) is not None
        if execution.is_cancelled and was_known:
            self._acknowledge_cancel(execution.execution_id, freed_bytes)

    def _acknowledge_cancel(self, execution_id: int, freed_bytes: int) -> None:
        self._control.put_threadsafe(
            pb.AttachRequest(
                execution_cancelled=pb.ExecutionCancelled(
                    execution_id=execution_id, freed_bytes=freed_bytes
                )
            )
        )

    # --- heartbeat ---

    async def _beat(self, interval: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._loop_progress += 1
            self._usage = await loop.run_in_executor(
                self._measurer, self._meter.measure, self._stages.model_files
            )
            self._peak_bytes = max(self._peak_bytes, self._usage.total_bytes)
            self._control.put(
                pb.AttachRequest(
                    heartbeat=pb.Heartbeat(
                        loop_progress=self._loop_progress,
                        lanes=[
                            pb.LaneProgress(
                                stage_id=lane.stage_id,
                                progress=lane.progress,
                                is_busy=lane.is_busy,
                            )
                            for lane in list(self._stages.lanes.values())
                        ],
                        memory=pb.MemoryUsage(
                            anonymous_pss_bytes=self._usage.anonymous_pss_bytes,
                            model_file_bytes=self._usage.model_file_bytes,
                            peak_bytes=self._peak_bytes,
                        ),
                    )
                )
            )
            await asyncio.sleep(interval)
