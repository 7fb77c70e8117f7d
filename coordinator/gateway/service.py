"""The Attach and Exchange calls: messages become events of one incarnation."""

import asyncio
import hmac
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from coordinator.facts.ids import Incarnation, WorkerId
from coordinator.gateway.guard import Guard
from coordinator.gateway.incarnation import Attached
from coordinator.gateway.tasks import end_task, first_message
from stagewire import WIRE_VERSION
from stagewire.channel import ServicerContext, make_server
from stagewire.envelope import open_envelope
from stagewire.errors import (
    EnvironmentStaleError,
    FieldInvalidError,
    MessageTooBigError,
    PortHeldError,
    StageError,
    TokenInvalidError,
    WireVersionMismatchError,
    WorkerLostError,
)
from stagewire.limits import CONTROL_MESSAGE_BYTES
from stagewire.v1 import gateway_pb2 as pb
from stagewire.wiretime import to_duration

_log = logging.getLogger(__name__)
SERVICE: Final = "stagewire.v1.GatewayService"
_HELLO_SECONDS: Final = 30.0
"""Time between the begin of Attach and its Hello: a silent caller must not hold a call for ever."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the supervisor started and therefore waits for."""

    worker_id: WorkerId
    incarnation: Incarnation
    process_id: int
    environment_key: str
    distributions: dict[str, str]
    """SHA-256 over the RECORD of each attested distribution; empty for a foreign interpreter."""
    executing: Callable[[], frozenset[int]] | None = None
    """Reads what the process notes that it executes, also after its death."""


class Gateway:
    """The listener for workers. One for the life of the coordinator; bound to loopback."""

    def __init__(self, *, heartbeat_seconds: float, hello_seconds: float = _HELLO_SECONDS) -> None:
        self._hello_seconds = hello_seconds
        self._heartbeat = to_duration(heartbeat_seconds)
        self._expected: dict[str, tuple[Expectation, asyncio.Future[Attached]]] = {}
        self._exchanges: dict[str, Attached] = {}
        self.address = ""
        self.refusals: Counter[str] = Counter()
        """Calls that were refused, by their name: somebody forges, or a worker is mistaken."""

    async def start(self) -> None:
        """Binds a free port of loopback.

        Raises:
            PortHeldError: loopback has no free port.
        """
        self._server = make_server([Guard({SERVICE: None})])
        self._server.add_generic_rpc_handlers(
            (
                # Items pass as bytes: their payload is never parsed as a protobuf field.
                grpc.method_handlers_generic_handler(
                    SERVICE,
                    {
                        "Attach": grpc.stream_stream_rpc_method_handler(
                            self.attach,
                            None,
                            pb.AttachResponse.SerializeToString,
                        ),
                        "Exchange": grpc.stream_stream_rpc_method_handler(self.exchange),
                    },
                ),
            )
        )
        try:
            port = self._server.add_insecure_port("127.0.0.1:0")
        except RuntimeError as error:
            raise PortHeldError("loopback has no free port for workers") from error
        self.address = f"127.0.0.1:{port}"
        await self._server.start()

    async def stop(self) -> None:
        """Ends every call and the listener."""
        await self._server.stop(grace=0.2)

    def expect(self, token: str, expectation: Expectation) -> "asyncio.Future[Attached]":
        """Announces a process that was started with this token; returns its attachment to come."""
        future: asyncio.Future[Attached] = asyncio.get_running_loop().create_future()
        self._expected[token] = (expectation, future)
        future.add_done_callback(lambda _: self._expected.pop(token, None))
        return future

    async def attach(
        self, messages: AsyncIterator[bytes], _context: ServicerContext
    ) -> AsyncIterator[pb.AttachResponse]:
        """Registers one incarnation and carries its control messages."""
        hello = parse_control(await first_message(messages, "Hello", self._hello_seconds))
        if hello.WhichOneof("message") != "hello":
            raise self._refused(
                "Attach", FieldInvalidError("the first message of Attach must be Hello")
            )
        attached, exchange_token, future = self._admit(hello.hello)
        reader = asyncio.create_task(_read(attached, messages))
        try:
            yield pb.AttachResponse(
                welcome=pb.Welcome(
                    incarnation=attached.incarnation,
                    exchange_token=exchange_token,
                    heartbeat_interval=self._heartbeat,
                )
            )
            if not future.done():
                future.set_result(attached)
            while (order := await attached.next_order()) is not None:
                yield order
        finally:
            # Before the reader, whose own failure must not keep the token good.
            self._exchanges.pop(exchange_token, None)
            attached.fence(WorkerLostError(f"worker {attached.worker_id!r} left"))
            await end_task(reader)

    def _admit(self, hello: pb.Hello) -> tuple[Attached, str, "asyncio.Future[Attached]"]:
        """Checks a Hello against what was started; a token is valid once."""
        entry = next(
            (
                item
                for token, item in self._expected.items()
                if hmac.compare_digest(token.encode(), hello.token.encode())
            ),
            None,
        )
        if entry is None:
            raise self._refused("Attach", TokenInvalidError("the token of Hello is wrong or used"))
        expectation, future = entry
        self._expected.pop(hello.token, None)
        try:
            check_hello(hello, expectation)
        except (WireVersionMismatchError, EnvironmentStaleError, TokenInvalidError) as error:
            if not future.done():
                future.set_exception(error)
            raise self._refused("Attach", error) from None
        attached = Attached(
            expectation.worker_id, expectation.incarnation, hello, expectation.executing
        )
        exchange_token = secrets.token_urlsafe(32)
        self._exchanges[exchange_token] = attached
        return attached, exchange_token, future

    async def exchange(
        self, messages: AsyncIterator[bytes], context: ServicerContext
    ) -> AsyncIterator[bytes]:
        """Carries the items of one incarnation."""
        # gRPC's typing leaves metadata values open, hence Any.
        metadata: dict[str, Any] = dict(context.invocation_metadata() or ())
        given = str(metadata.get("authorization", "")).removeprefix("Bearer ")
        attached = self._exchanges.pop(given, None)
        if attached is None:
            raise self._refused(
                "Exchange",
                TokenInvalidError("the token of Exchange is wrong or used; Welcome has it"),
            )
        reader = asyncio.create_task(_read_items(attached, messages))
        try:
            while (envelope := await attached.next_envelope()) is not None:
                yield envelope
        finally:
            attached.fence(WorkerLostError(f"worker {attached.worker_id!r} left"))
            await end_task(reader)

    def _refused(self, call: str, error: StageError) -> StageError:
        """Counts and logs a refusal; the workers that are attached do not notice it."""
        self.refusals[call] += 1
        _log.warning("%s refused reason=%s count=%s", call, error.reason, self.refusals[call])
        return error


def check_hello(hello: pb.Hello, expectation: Expectation) -> None:
    """Checks who attaches.

    Raises:
        WireVersionMismatchError: the versions differ.
        TokenInvalidError: another process than the one that was started.
        EnvironmentStaleError: the worker runs other code than was built for it.
    """
    if hello.wire_version != WIRE_VERSION:
        raise WireVersionMismatchError(
            f"worker {expectation.worker_id!r} speaks wire version {hello.wire_version}, this"
            f" coordinator {WIRE_VERSION}; build the worker's environment again",
            worker=hello.wire_version,
            coordinator=WIRE_VERSION,
        )
    if (
        hello.worker_id != expectation.worker_id
        or hello.process.process_id != expectation.process_id
    ):
        raise TokenInvalidError("another process than the one that was started attached")
    attested = {item.name: item.record_sha256 for item in hello.environment.distributions}
    stale = sorted(
        name for name, digest in expectation.distributions.items() if attested.get(name) != digest
    )
    if stale or hello.environment.environment_key != expectation.environment_key:
        raise EnvironmentStaleError(
            f"worker {expectation.worker_id!r} runs other code than was built for it"
            f" ({', '.join(stale) or 'environment key'}); start again to rebuild it"
        )


def parse_control(message: bytes) -> pb.AttachRequest:
    """Returns one control message of a worker.

    Raises:
        MessageTooBigError: it is over the limit of Attach; bulk belongs to Exchange.
        FieldInvalidError: it cannot be parsed.
    """
    if len(message) > CONTROL_MESSAGE_BYTES:
        raise MessageTooBigError(
            f"a message of Attach has {len(message)} bytes, the limit is {CONTROL_MESSAGE_BYTES}"
        )
    try:
        return pb.AttachRequest.FromString(message)
    except DecodeError as error:
        raise FieldInvalidError("a message of Attach cannot be parsed") from error


async def _read(attached: Attached, messages: AsyncIterator[bytes]) -> None:
    try:
        async for message in messages:
            attached.take(parse_control(message))
    finally:
        # Also when a message cannot be read: whoever sent it is not to be trusted with more.
        attached.fence(WorkerLostError(f"worker {attached.worker_id!r} ended Attach"))


async def _read_items(attached: Attached, messages: AsyncIterator[bytes]) -> None:
    try:
        async for message in messages:
            attached.exchange(*open_envelope(message, pb.ExchangeRequest()))
    finally:
        attached.fence(WorkerLostError(f"worker {attached.worker_id!r} ended Exchange"))
