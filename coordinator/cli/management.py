"""Calls of ManagementService from a command."""

from typing import Any, Final

import grpc

from coordinator.app.processes import RunningProcesses, from_message
from stagewire import status
from stagewire.channel import open_channel
from stagewire.endpoint import Endpoint
from stagewire.v1 import management_pb2 as pb
from stagewire.wiretime import to_duration

_SERVICE: Final = "/stagewire.v1.ManagementService/"
_CALL_SECONDS: Final = 10.0


def shutdown(endpoint: Endpoint, drain_seconds: float | None) -> int:
    """Asks a coordinator to stop; returns how many requests are running.

    Raises:
        StageError: the call failed.
    """
    request = pb.ShutdownRequest()
    if drain_seconds is not None:
        request.drain_timeout.CopyFrom(to_duration(drain_seconds))
    answer: pb.ShutdownResponse = _call(endpoint, "Shutdown", request, pb.ShutdownResponse)
    return answer.running_requests


def restart_worker(endpoint: Endpoint, worker: str) -> None:
    """Asks a coordinator to start a worker again.

    Raises:
        WorkerUnknownError: its plan has no such worker.
        StageError: the call failed.
    """
    request = pb.RestartWorkerRequest(worker_id=worker)
    _call(endpoint, "RestartWorker", request, pb.RestartWorkerResponse)


def processes(endpoint: Endpoint) -> RunningProcesses:
    """Asks a coordinator which processes it runs.

    Raises:
        CapabilityMissingError: it is of a version that does not say.
        StageError: the call failed.
    """
    answer = _call(endpoint, "ListProcesses", pb.ListProcessesRequest(), pb.ListProcessesResponse)
    return from_message(answer)


def _call(endpoint: Endpoint, name: str, request: Any, response: Any) -> Any:
    """Makes one call; generated messages share no typed base, hence Any."""
    with open_channel(endpoint.management_address) as channel:
        call = channel.unary_unary(
            f"{_SERVICE}{name}", type(request).SerializeToString, response.FromString
        )
        token = f"Bearer {endpoint.management_token}"
        try:
            return call(request, timeout=_CALL_SECONDS, metadata=(("authorization", token),))
        except grpc.RpcError as error:
            raise status.from_rpc_error(error) from None
