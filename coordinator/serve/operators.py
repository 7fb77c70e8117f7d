"""ManagementService: what operators may ask of a running coordinator."""

from typing import Final, Protocol

import grpc

from coordinator.facts.ids import WorkerId
from stagewire.channel import GenericRpcHandler, ServicerContext
from stagewire.v1 import management_pb2 as pb
from stagewire.wiretime import to_seconds

SERVICE: Final = "stagewire.v1.ManagementService"


class Operations(Protocol):
    """What the coordinator does on request."""

    def request_stop(self, drain_seconds: float | None) -> int:
        """Begins to stop; returns how many requests are running."""

    def restart_worker(self, worker: WorkerId) -> None:
        """Starts a worker again.

        Raises:
            WorkerUnknownError: the plan has no such worker.
        """

    def processes(self) -> pb.ListProcessesResponse:
        """Returns the processes that run now."""


class ManagementService:
    """The service of operators. Its calls raise; the guard around it answers with statuses."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def handler(self) -> GenericRpcHandler:
        """Returns the handlers."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Shutdown": grpc.unary_unary_rpc_method_handler(
                    self.shutdown,
                    pb.ShutdownRequest.FromString,
                    pb.ShutdownResponse.SerializeToString,
                ),
                "RestartWorker": grpc.unary_unary_rpc_method_handler(
                    self.restart_worker,
                    pb.RestartWorkerRequest.FromString,
                    pb.RestartWorkerResponse.SerializeToString,
                ),
                "ListProcesses": grpc.unary_unary_rpc_method_handler(
                    self.list_processes,
                    pb.ListProcessesRequest.FromString,
                    pb.ListProcessesResponse.SerializeToString,
                ),
            },
        )

    async def shutdown(
        self, request: pb.ShutdownRequest, _context: ServicerContext
    ) -> pb.ShutdownResponse:
        """Begins to stop the coordinator."""
        drain = to_seconds(request.drain_timeout) if request.HasField("drain_timeout") else None
        return pb.ShutdownResponse(running_requests=self._operations.request_stop(drain))

    async def restart_worker(
        self, request: pb.RestartWorkerRequest, _context: ServicerContext
    ) -> pb.RestartWorkerResponse:
        """Starts one worker again."""
        self._operations.restart_worker(WorkerId(request.worker_id))
        return pb.RestartWorkerResponse()

    async def list_processes(
        self, _request: pb.ListProcessesRequest, _context: ServicerContext
    ) -> pb.ListProcessesResponse:
        """Names the processes that run now."""
        return self._operations.processes()
