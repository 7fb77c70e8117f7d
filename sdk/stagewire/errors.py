"""The one table of failures: every reason that a caller, a plan's author or an operator may see.

A refusal is a decision: something must change before asking again. A fault is an accident: the same
request may work later. Each class owns one canonical gRPC status code, one reason and the advice
`recovery`; no other module names a code. `docs/errors.md` is generated from this module.

    StageError
    ├── Refusal   a deliberate "no"; it changes nothing
    └── Fault     an accident
"""

import enum
from typing import ClassVar, Final

AS_SAID: Final = "do what the message says"
"""Advice where each message has one of its own."""


class Code(enum.IntEnum):
    """Canonical gRPC status codes, so that modules without gRPC can name them."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ExitCode(enum.IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAULT = 1
    REFUSED = 2
    MISSED = 3
    USAGE = 64
    INTERNAL = 70
    HELD = 75
    UNSAFE_CONFIGURATION = 78
    INTERRUPTED = 130


class StageError(Exception):
    """Base of every failure that a caller may see.

    `message` is for people and names what to change; it holds no path, pid or exception class when
    it is sent to a client. `facts` are the values behind it. `retry_delay_ms` is set where waiting
    helps. A client repeats a request by itself only where `is_retryable` says so, and only when its
    caller said that it may run twice.
    """

    code: ClassVar[Code] = Code.INTERNAL
    reason: ClassVar[str] = "INTERNAL_FAULT"
    recovery: ClassVar[str] = "report it; the coordinator's log has the cause under the error id"
    exit_code: ClassVar[ExitCode] = ExitCode.FAULT
    is_retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, retry_delay_ms: int | None = None, **facts: str | int | float
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_delay_ms = retry_delay_ms
        self.facts: dict[str, str] = {name: str(value) for name, value in facts.items()}


class Refusal(StageError):  # noqa: N818 - the glossary's word
    """A deliberate "no" that says what must change. Changes no state."""

    code = Code.FAILED_PRECONDITION
    reason = "REFUSED"
    recovery = "change what the message names"
    exit_code = ExitCode.REFUSED


class Fault(StageError):  # noqa: N818 - the glossary's word
    """An accident; the same request may work later."""


# --- requests ---------------------------------------------------------------------------------


class FieldInvalidError(Refusal):
    """A field is missing or out of range."""

    code = Code.INVALID_ARGUMENT
    reason = "FIELD_INVALID"
    recovery = "fix the request"


class TensorMismatchError(Refusal):
    """A tensor does not have the type or shape that its port declares."""

    code = Code.INVALID_ARGUMENT
    reason = "TENSOR_MISMATCH"
    recovery = "send the type and shape that the message names"


class MediaInvalidError(Refusal):
    """A file given as audio, image or text cannot be read as such."""

    code = Code.INVALID_ARGUMENT
    reason = "MEDIA_INVALID"
    recovery = AS_SAID


class PipelineUnknownError(Refusal):
    """The plan has no pipeline of that name."""

    code = Code.NOT_FOUND
    reason = "PIPELINE_UNKNOWN"
    recovery = "use one of the names in the message"


class WorkerUnknownError(Refusal):
    """The plan has no worker of that name."""

    code = Code.NOT_FOUND
    reason = "WORKER_UNKNOWN"
    recovery = "correct the name"


class WorkerReadyError(Refusal):
    """A worker is to be started that runs."""

    reason = "WORKER_READY"
    recovery = "nothing; only a worker that was lost or given up is started by hand"


class RequestDuplicateError(Refusal):
    """A request with the same id is running or was answered."""

    code = Code.ALREADY_EXISTS
    reason = "REQUEST_DUPLICATE"
    recovery = "choose a new request id, or none; with a retry delay its last attempt still ends"


class MessageTooBigError(Refusal):
    """A message or tensor is over its limit."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "MESSAGE_TOO_BIG"
    recovery = "send less at once; `infer` takes and gives large tensors in chunks"


class SessionUnknownError(Refusal):
    """There is no session of that id: it was closed, its lease ran out, or it never was."""

    code = Code.NOT_FOUND
    reason = "SESSION_UNKNOWN"
    recovery = "open a new session; what the old one remembered is gone"


class SessionLostError(Refusal):
    """A worker that kept the state of the session was lost, and the state with it."""

    reason = "SESSION_LOST"
    recovery = "open a new session; what the old one remembered is gone"


class SessionBusyError(Refusal):
    """Another request of the same session is running; a session runs one at a time."""

    reason = "SESSION_BUSY"
    recovery = "wait for the other request of the session, or open a second session"


class SessionsFullError(Fault):
    """As many sessions are open as may be."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "SESSIONS_FULL"
    recovery = "close a session, or wait until the lease of one runs out"


class LaneFullError(Fault):
    """A stage has as many executions queued as its plan allows."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "LANE_FULL"
    recovery = "wait the retry delay, then send it again"
    is_retryable = True


class DeadlineExceededError(Fault):
    """The deadline of a request passed, or a stage could not have met it."""

    code = Code.DEADLINE_EXCEEDED
    reason = "DEADLINE_EXCEEDED"
    recovery = "allow more time, or ask for less"


class CancelledError(Fault):
    """The caller ended the request."""

    code = Code.CANCELLED
    reason = "CANCELLED"
    recovery = "nothing; the caller asked for it"


class RequestPoisonousError(Refusal):
    """Workers died twice while they executed this request; it is not run again."""

    reason = "REQUEST_POISONOUS"
    recovery = "do not send it again; look for what is special about its items"


class PayloadCorruptError(Fault):
    """Size, order or checksum of a payload differs from its descriptor."""

    code = Code.DATA_LOSS
    reason = "PAYLOAD_CORRUPT"
    recovery = "stop; do not retry"


# --- who may ask ------------------------------------------------------------------------------


class TokenInvalidError(Refusal):
    """The token is missing, wrong, used up or meant for another service."""

    code = Code.UNAUTHENTICATED
    reason = "TOKEN_INVALID"
    recovery = "connect through the endpoint file that the running coordinator wrote"


class BindUnsafeError(Refusal):
    """A listener would be reachable from other machines without protection."""

    reason = "BIND_UNSAFE"
    recovery = "listen on loopback"
    exit_code = ExitCode.UNSAFE_CONFIGURATION


class LoopbackDownError(Refusal):
    """This machine cannot talk to itself, as in a network namespace that nobody set up."""

    reason = "LOOPBACK_DOWN"
    recovery = "bring the loopback interface up with `ip link set lo up`"


# --- plans ------------------------------------------------------------------------------------


class PlanInvalidError(Refusal):
    """A plan file cannot be read, or breaks a rule; every problem is listed at once."""

    code = Code.INVALID_ARGUMENT
    reason = "PLAN_INVALID"
    recovery = "mend the lines that the message names"


class PlacementRefusedError(Refusal):
    """No worker of the plan can host a stage."""

    reason = "NO_RUNNABLE_DEVICE"
    recovery = "change the plan; the facts list each device and why not"


class ConstraintExceededError(Refusal):
    """A plan does not fit under one of the memory constraints; the arithmetic is in the message."""

    reason = "CONSTRAINT_EXCEEDED"
    recovery = "free what the message names, or lower a budget"


class MemoryBusyError(Fault):
    """Memory is promised to others at the moment."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "MEMORY_BUSY"
    recovery = "wait the retry delay, then send it again"
    is_retryable = True


# --- artifacts and environments ---------------------------------------------------------------


class ArtifactMissingError(Refusal):
    """Files of an artifact are not in the cache and may not be fetched now."""

    reason = "ARTIFACT_MISSING"
    recovery = "allow the download with `--yes`, or run `coordinator artifacts pull --plan FILE`"


class ArtifactCorruptError(Refusal):
    """A file of an artifact differs from its sha256."""

    code = Code.DATA_LOSS
    reason = "ARTIFACT_CORRUPT"
    recovery = (
        "run `coordinator artifacts pull --plan FILE`, which fetches a damaged file again; where"
        " the plan states another digest than its source has, correct the plan"
    )


class ArtifactUnavailableError(Fault):
    """A source of an artifact did not answer or does not have it."""

    code = Code.UNAVAILABLE
    reason = "ARTIFACT_UNAVAILABLE"
    recovery = "check the network and the source that the message names, then pull again"


class PathForbiddenError(Refusal):
    """A path leaves the folder that it belongs to, or is not a regular file."""

    code = Code.PERMISSION_DENIED
    reason = "PATH_FORBIDDEN"
    recovery = AS_SAID


class FormatUnsupportedError(Refusal):
    """A file is not of the format that the plan says, or of one that runs code when opened."""

    reason = "FORMAT_UNSUPPORTED"
    recovery = "name an artifact in a format that the executor lists"


class DiskFullError(Refusal):
    """A file could not be written because the disk is full."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "DISK_FULL"
    recovery = "free the space that the message names"


class ProcessLimitError(Refusal):
    """The operating system lets this process or user have no more files or processes."""

    code = Code.RESOURCE_EXHAUSTED
    reason = "PROCESS_LIMIT"
    recovery = AS_SAID


class EnvironmentMissingError(Refusal):
    """The environment of a worker is not built and may not be built now."""

    reason = "ENVIRONMENT_MISSING"
    recovery = "allow the download with `--yes`"


class EnvironmentBuildError(Fault):
    """The environment of a worker could not be built."""

    code = Code.UNAVAILABLE
    reason = "ENVIRONMENT_BUILD_FAILED"
    recovery = "read the tool's last lines in the message; check network, disk and Python version"


class EnvironmentBrokenError(Refusal):
    """A library of a worker's environment cannot be imported."""

    reason = "ENVIRONMENT_BROKEN"
    recovery = "install what the message names, then start again"


class EnvironmentStaleError(Refusal):
    """A worker runs other code than the coordinator built for it."""

    reason = "ENVIRONMENT_STALE"
    recovery = "start again; the environment is rebuilt"


# --- workers ----------------------------------------------------------------------------------


class WireVersionMismatchError(Refusal):
    """Worker and coordinator speak different wire versions."""

    reason = "WIRE_VERSION_MISMATCH"
    recovery = "upgrade one side; both versions are in the message"


class StageNotResidentError(Refusal):
    """A stage is not loaded."""

    reason = "STAGE_NOT_RESIDENT"
    recovery = "load it, then retry"


class StageStartingError(Fault):
    """A stage is starting or starting again."""

    code = Code.UNAVAILABLE
    reason = "STAGE_STARTING"
    recovery = "wait the retry delay, then send it again"
    is_retryable = True


class StageFailedError(Fault):
    """A stage or its worker was given up."""

    code = Code.UNAVAILABLE
    reason = "STAGE_FAILED"
    recovery = "read `coordinator status`, mend the cause, then `coordinator restart WORKER`"


class LoadFailedError(Fault):
    """A stage could not be loaded."""

    reason = "LOAD_FAILED"
    recovery = "read the message; check the artifact, the executor's options and free memory"


class ProofFailedError(Refusal):
    """A loaded stage did not run on its example inputs as it must."""

    reason = "PROOF_FAILED"
    recovery = "read the verdict in the message; change device, artifact or requirement"


class WorkerLostError(Fault):
    """The worker's process ended while it held the request."""

    code = Code.UNAVAILABLE
    reason = "WORKER_LOST"
    recovery = "send it again if it may run twice; the worker is started again by itself"
    is_retryable = True


class WorkerHungError(Fault):
    """The worker made no progress and was ended."""

    code = Code.UNAVAILABLE
    reason = "WORKER_HUNG"
    recovery = "send it again if it may run twice; the worker is started again by itself"
    is_retryable = True


class StageLostError(Fault):
    """The process of one stage, a child of its worker, ended while it held the request."""

    code = Code.UNAVAILABLE
    reason = "STAGE_LOST"
    recovery = "send it again if it may run twice; the stage is started again by itself"
    is_retryable = True


class StageHungError(Fault):
    """The process of one stage, a child of its worker, made no progress and was ended."""

    code = Code.UNAVAILABLE
    reason = "STAGE_HUNG"
    recovery = "send it again if it may run twice; the stage is started again by itself"
    is_retryable = True


class WorkerStuckError(Fault):
    """A worker was killed and its process does not end; its memory stays reserved."""

    code = Code.UNAVAILABLE
    reason = "WORKER_STUCK"
    recovery = "see what the process waits for, a driver or a disk; the machine's restart ends it"


class WorkerStartError(Fault):
    """A worker did not start."""

    code = Code.UNAVAILABLE
    reason = "WORKER_START_FAILED"
    recovery = "read the worker's log, which the message names"


class StartDeadlineError(Fault):
    """A worker lives and was not ready in time; it was ended."""

    code = Code.UNAVAILABLE
    reason = "START_DEADLINE"
    recovery = "see what was waited for, in the message; the worker's log may say why it took long"


class StageFaultError(Fault):
    """An executor failed on an item."""

    reason = "STAGE_FAULT"
    recovery = "look at the item that the message names; the worker's log has the cause"


class OutputContractError(Fault):
    """A stage sent an item that breaks the rules of its own port."""

    reason = "OUTPUT_CONTRACT"
    recovery = "correct the port in the plan, or the executor"


class CapabilityMissingError(Refusal):
    """A worker has no such executor, function or device."""

    code = Code.UNIMPLEMENTED
    reason = "CAPABILITY_MISSING"
    recovery = "choose one that `coordinator devices` lists"


# --- the coordinator itself -------------------------------------------------------------------


class CoordinatorUnreachableError(Fault):
    """No coordinator answers."""

    code = Code.UNAVAILABLE
    reason = "COORDINATOR_UNREACHABLE"
    recovery = AS_SAID
    is_retryable = True


class ShuttingDownError(Fault):
    """The coordinator is stopping."""

    code = Code.UNAVAILABLE
    reason = "SHUTTING_DOWN"
    recovery = "start it again, or wait for the one that replaces it"
    is_retryable = True


class StateHeldError(Refusal):
    """Another coordinator holds the state folder."""

    reason = "STATE_HELD"
    recovery = "stop the one that the message names, or name another state folder"
    exit_code = ExitCode.HELD


class PortHeldError(Refusal):
    """A port is taken by another program."""

    reason = "PORT_HELD"
    recovery = "choose another port with --listen, or leave it out and take a free one"
    exit_code = ExitCode.HELD


class InternalFaultError(Fault):
    """Anything unexpected; the text says nothing of the cause."""


def every_failure() -> tuple[type[StageError], ...]:
    """Returns every concrete failure class in the order of this module."""
    return tuple(
        item
        for item in globals().values()
        if isinstance(item, type)
        and issubclass(item, StageError)
        and item not in (StageError, Refusal, Fault)
    )


def failure_class(reason: str) -> type[StageError]:
    """Returns the class of a reason; `InternalFaultError` for one that is not known here."""
    return next((cls for cls in every_failure() if cls.reason == reason), InternalFaultError)
