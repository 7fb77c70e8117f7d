"""The asynchronous client's line to its coordinator, across restarts of that."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError

from stagewire import channel, status
from stagewire.client import state
from stagewire.client.connection import Calls
from stagewire.client.core.requests import ports_of, value_of
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given, needs_port
from stagewire.client.line import STATE_SECONDS
from stagewire.client.location import Location, Place
from stagewire.errors import (
    CancelledError,
    CoordinatorUnreachableError,
    DeadlineExceededError,
    PayloadCorruptError,
    StageError,
)
from stagewire.tensor import Value
from stagewire.v1 import coordinator_pb2 as pb

T = TypeVar("T")


class AsyncConnection(Calls):
    """A channel of one loop; closed when it was retired and its last call has ended."""

    def __init__(self, place: Place) -> None:
        self._channel = channel.open_aio_channel(place.address)
        super().__init__(place, self._channel)
        self.users = 0
        self.is_retired = False

    async def leave(self) -> None:
        """Notes the end of a call."""
        self.users -= 1
        if self.is_retired and self.users == 0:
            await self.close()

    async def close(self) -> None:
        """Cancels the calls under way and closes the channel."""
        await self._channel.close(None)


class AsyncLine:
    """Gives each call a connection to the run of the coordinator that is there now."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._connection: AsyncConnection | None = None
        self._is_closed = False

    async def close(self) -> None:
        """Ends the connection; calls that still run are cancelled."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    @contextlib.asynccontextmanager
    async def calling(self) -> AsyncIterator[AsyncConnection]:
        """Gives a connection to one call, and types its failure.

        Raises:
            CancelledError: the client was closed.
            StageError: there is no coordinator as was asked for, or what the call fails with.
        """
        connection = await self._connected()
        try:
            yield connection
        except grpc.RpcError as error:
            raise self.failure(connection, status.from_rpc_error(error)) from None
        except DecodeError:
            raise PayloadCorruptError("a message of the coordinator cannot be read") from None
        except grpc.aio.UsageError:
            # gRPC's answer to a call on a channel that was closed.
            if self._is_closed:
                raise CancelledError("the client was closed") from None
            raise
        finally:
            await connection.leave()

    def failure(self, connection: AsyncConnection, found: StageError) -> StageError:
        """Returns the failure of a call, with all that is known of a silent coordinator."""
        if isinstance(found, CoordinatorUnreachableError):
            return self._location.silence(connection.place, found.message)
        return found

    async def unary(
        self, name: str, request: Any, timeout: float | None, *, is_request: bool = False
    ) -> Any:
        """Makes one of the small calls, whose messages are of classes of their own, hence Any.

        `is_request` says that `timeout` is what is left of the time of a request.

        Raises:
            CoordinatorUnreachableError: no coordinator answers, or not in time.
            StageError: what the call fails with.
        """
        seconds = STATE_SECONDS if timeout is None else timeout
        async with self.calling() as connection:
            call = getattr(connection, name)(request, timeout=seconds, metadata=connection.metadata)
            try:
                return await awaited(call, call)
            except grpc.RpcError as error:
                failure = status.from_rpc_error(error)
                if is_request or not isinstance(failure, DeadlineExceededError):
                    raise
            # One that runs would have answered.
            message = f"no answer came within {seconds:g} s"
            raise self._location.silence(connection.place, message)

    async def state(
        self, timeout: float | None, *, is_request: bool = False
    ) -> state.CoordinatorState:
        """Returns what runs where, and why; see `unary`."""
        answer: pb.GetPlacementResponse = await self.unary(
            "get_placement", pb.GetPlacementRequest(), timeout, is_request=is_request
        )
        return state.from_message(answer.state)

    async def typed(self, pipeline: str, port: str, given: Given, deadline: Deadline) -> Value:
        """Returns what was given for a port as a value, asking for the port where that matters.

        Raises:
            StageError: there is no such port, it cannot hold that, or it cannot be asked for.
        """
        if not needs_port(given):
            # What has no type of the wire at all is refused when it is encoded.
            return given  # type: ignore[return-value]
        async with self.calling() as connection:
            if connection.ports is None:
                left = deadline.seconds_left()
                answer = await self.state(left, is_request=left is not None)
                connection.ports = ports_of(answer)
            return value_of(pipeline, port, given, connection.ports)

    async def _connected(self) -> AsyncConnection:
        if self._is_closed:
            raise CancelledError("the client was closed")
        # A look at one small local file; it is read once for each start of a coordinator.
        place = self._location.here()
        before = self._connection
        if before is not None and before.place == place:
            before.users += 1
            return before
        connection = self._connection = AsyncConnection(place)
        connection.users = 1
        if before is not None:
            before.is_retired = True
            if before.users == 0:
                await before.close()
        return connection


async def awaited(call: Any, part: Awaitable[T]) -> T:
    """Waits for a part of a call; a task that is cancelled meanwhile cancels the call.

    gRPC raises asyncio's own `CancelledError` also when the other side ended the call as cancelled,
    which must not look as if the task that waits were cancelled.

    Raises:
        StageError: the call, not the task, was cancelled.
        grpc.RpcError: the call failed.
    """
    task = asyncio.ensure_future(part)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        call.cancel()
        raise
    if task.cancelled():
        raise await ended(call)
    return task.result()


async def ended(call: Any) -> StageError:
    """Returns the failure of a call, of which gRPC's typing says too little, hence Any."""
    return status.from_end(await call.code(), await call.trailing_metadata())
