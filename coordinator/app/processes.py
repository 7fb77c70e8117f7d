"""The processes of a running coordinator, and what is reserved for each; told and read back."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from coordinator.app.design import Design
from coordinator.app.preparation import Preparation
from coordinator.app.worker_life import WorkerLife
from coordinator.devices.process_memory import ProcessIdentity
from coordinator.devices.process_memory_linux import identity_of
from coordinator.facts.ids import StageId, WorkerId
from coordinator.ledger.budgets import steady_bytes
from coordinator.ledger.reservation import COORDINATOR, Lifetime, stage_owner, worker_owner
from coordinator.supervise.runner import WorkerRunner
from stagewire.v1 import capability_pb2
from stagewire.v1 import management_pb2 as pb


@dataclass(frozen=True, slots=True)
class Occupation:
    """What one stage brought into the process of its worker."""

    stage: str
    artifact: str
    """Empty for a stage without one."""
    files: tuple[str, ...]
    anonymous_before_bytes: int | None
    """Anonymous memory of the process before the load; None when its worker did not say."""
    anonymous_after_bytes: int | None


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """The process of one worker, less what it started itself."""

    worker: str
    identity: ProcessIdentity
    incarnation: int
    reserved_bytes: int
    """For the process and its stages, outside loads."""
    request_bytes: int
    """What of that is kept for requests."""
    stages: tuple[Occupation, ...]


@dataclass(frozen=True, slots=True)
class RunningProcesses:
    """Every process that a coordinator runs."""

    coordinator: ProcessIdentity
    coordinator_reserved_bytes: int
    """For its own process and for items under way."""
    coordinator_request_bytes: int
    """What of that is kept for items under way."""
    workers: tuple[RunningWorker, ...]


def list_processes(
    design: Design,
    lives: Mapping[WorkerId, WorkerLife],
    runners: Mapping[WorkerId, WorkerRunner],
    preparation: Preparation,
) -> pb.ListProcessesResponse:
    """Names every process that runs now. Those of workers are known by their parent, this one."""
    reservations = [line.reservation for line in design.ledger.snapshot().reservations]
    own = [item for item in reservations if item.process == COORDINATOR]
    answer = pb.ListProcessesResponse(
        coordinator=_identity(os.getpid()),
        coordinator_reserved_bytes=steady_bytes(own),
        coordinator_request_bytes=sum(
            item.size_bytes for item in own if item.lifetime is Lifetime.TRANSPORT
        ),
    )
    for worker, life in lives.items():
        process = life.hosting.process
        identity = _identity(process.pid) if process and process.exit_status is None else None
        if identity is None:
            continue
        owners = {worker_owner(worker), *map(stage_owner, design.stages_on(worker))}
        claims = [item for item in reservations if item.owner in owners]
        answer.workers.add(
            worker_id=worker,
            process=identity,
            incarnation=runners[worker].incarnation,
            reserved_bytes=steady_bytes(claims),
            request_bytes=sum(
                item.size_bytes for item in claims if item.lifetime is Lifetime.REQUEST
            ),
            stages=_occupations(design, life, preparation),
        )
    return answer


def _occupations(
    design: Design, life: WorkerLife, preparation: Preparation
) -> Iterator[pb.StageOccupation]:
    artifacts = preparation.artifacts()
    # In the order of the plan, which is that of the loads.
    for stage in design.stages_on(life.worker):
        loaded = life.hosting.stages.get(stage)
        if loaded is None:
            continue
        occupation = pb.StageOccupation(stage_id=stage)
        if loaded.anonymous_bytes is not None:
            before, after = loaded.anonymous_bytes
            occupation.anonymous_before_bytes, occupation.anonymous_after_bytes = before, after
        choice = design.placement.stages[StageId(stage)].artifact
        if choice is not None and (artifact := artifacts.get(choice.artifact_id)) is not None:
            folder = preparation.store.folder(artifact)
            occupation.artifact_id = choice.artifact_id
            occupation.files.extend(str(folder / file.path) for file in artifact.files)
        yield occupation


def _identity(pid: int) -> capability_pb2.ProcessIdentity | None:
    # Nobody but this process notes the end of its children, so that the id is still theirs.
    found = identity_of(pid)
    if found is None:
        return None
    return capability_pb2.ProcessIdentity(
        process_id=found.pid, created_ticks=found.start_ticks, operating_system="linux"
    )


def from_message(message: pb.ListProcessesResponse) -> RunningProcesses:
    """Returns the processes of a wire form."""
    return RunningProcesses(
        _identity_from(message.coordinator),
        message.coordinator_reserved_bytes,
        message.coordinator_request_bytes,
        tuple(
            RunningWorker(
                worker.worker_id,
                _identity_from(worker.process),
                worker.incarnation,
                worker.reserved_bytes,
                worker.request_bytes,
                tuple(map(_occupation_from, worker.stages)),
            )
            for worker in message.workers
        ),
    )


def _identity_from(message: capability_pb2.ProcessIdentity) -> ProcessIdentity:
    return ProcessIdentity(message.process_id, message.created_ticks)


def _occupation_from(message: pb.StageOccupation) -> Occupation:
    has_sizes = message.HasField("anonymous_after_bytes")
    return Occupation(
        message.stage_id,
        message.artifact_id,
        tuple(message.files),
        message.anonymous_before_bytes if has_sizes else None,
        message.anonymous_after_bytes if has_sizes else None,
    )
