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
from collections.abc import Callable, Sequence

import grpc

from stagewire import WIRE_VERSION, status
from stagewire.v1 import capability_pb2
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_seconds
from stagewire.worker.attest import attest_distributions, thread_settings
from stagewire.worker.executions import Executions
from stagewire.worker.executor import Executor
from stagewire.worker.link import ControlLink, ItemLink
from stagewire.worker.memory import MemoryUsage, make_meter
from stagewire.worker.outbox import Outbox
from stagewire.worker.stages import Stages, fault
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
        self._loop_progress = 0
        self._is_leaving = False
        # Loads and releases are serial, so that each can be measured; neither proofs, each of its
        # own stage, nor measuring wait for them.
        self._loader = concurrent.futures.ThreadPoolExecutor(1, "loader")
        self._prover = concurrent.futures.ThreadPoolExecutor(thread_name_prefix="prover")
        self._measurer = concurrent.futures.ThreadPoolExecutor(1, "measurer")
        self._orders: set[asyncio.Task[None]] = set()

    async def serve(self) -> int:
        """Attaches, works, and returns the exit code."""
        self._control = ControlLink(self._start.address)
        welcome = await self._control.greet(self._hello())
        self._outbox = Outbox(asyncio.get_running_loop())
        self._executions = Executions(self._control, self._outbox)
        self._stages = Stages(
            self._executors, self._outbox, self._meter, self._executions.note_ended
        )
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
        if self._is_leaving:
            # States may hold files or devices, which the end of the process would not close.
            await asyncio.get_running_loop().run_in_executor(
                self._prover, self._stages.sessions.release_all
            )
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
                order = message.load_stage
                self._order(order.stage_id, functools.partial(self._load, order))
            elif kind == "prove_stage":
                stage_id = message.prove_stage.stage_id
                prove = functools.partial(self._stages.prove, stage_id)
                self._order(stage_id, prove, self._prover)
            elif kind == "release_stage":
                stage_id = message.release_stage.stage_id
                self._order(stage_id, functools.partial(self._stages.release, stage_id))
            elif kind == "release_session":
                # Not behind a load: the caller waits until its session has ended.
                session_id = message.release_session.session_id
                release = functools.partial(self._stages.release_session, session_id)
                self._order("", release, self._prover)
            elif kind == "cancel_execution":
                self._executions.cancel(message.cancel_execution.execution_id, self._stages)
            elif kind == "credit_grant":
                self._executions.grant(message.credit_grant)
            elif kind == "drain":
                self._order("", functools.partial(self._drain, message.drain))
            elif kind == "shutdown":
                break
        self._is_leaving = True

    def _order(
        self,
        stage_id: str,
        work: Callable[[], pb.AttachRequest],
        pool: concurrent.futures.Executor | None = None,
    ) -> None:
        """Carries out one order off the loop, on the loader thread in turn, and answers it."""

        async def carry_out() -> None:
            loop = asyncio.get_running_loop()
            try:
                answer = await loop.run_in_executor(pool or self._loader, work)
            except Exception as error:  # the outermost edge: the coordinator waits for an answer
                answer = fault(stage_id, "could not be handled", error)
            self._control.put(answer)

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

    def _drain(self, order: pb.Drain) -> pb.AttachRequest:
        # Nothing new is admitted by the coordinator; what runs is on the lanes and ends by itself.
        self._executions.wait_until_none(to_seconds(order.time_left))
        return pb.AttachRequest(drained=pb.Drained())

    async def _take_items(self) -> None:
        while (received := await self._items.next_envelope()) is not None:
            self._loop_progress += 1
            envelope, payload = received
            for message in envelope.messages:
                self._executions.take(message, payload, self._stages)

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
                                progress=slot.progress,
                                is_busy=slot.is_busy,
                            )
                            for lane in list(self._stages.lanes.values())
                            for slot in lane.slots
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
