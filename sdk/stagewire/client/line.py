"""The blocking client's line to its coordinator, across restarts of that."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from stagewire import status
from stagewire.client import state
from stagewire.client.connection import Connection
from stagewire.client.core.requests import ports_of, value_of
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given, needs_port
from stagewire.client.location import Location
from stagewire.errors import (
    CancelledError,
    CoordinatorUnreachableError,
    DeadlineExceededError,
    PayloadCorruptError,
)
from stagewire.tensor import Value
from stagewire.v1 import coordinator_pb2 as pb

STATE_SECONDS: Final = 10.0
"""Time for calls that decide nothing and wait for nothing."""


class Line:
    """Gives each call a connection to the run of the coordinator that is there now."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self.closed = threading.Event()

    def close(self) -> None:
        """Ends the connection; calls that still run are cancelled."""
        with self._lock:
            self.closed.set()
            if self._connection is not None:
                self._connection.close()

    @contextlib.contextmanager
    def calling(self) -> Iterator[Connection]:
        """Gives a connection to one call, and types its failure.

        Raises:
            CancelledError: the client was closed.
            StageError: there is no coordinator as was asked for, or what the call fails with.
        """
        connection = self._connected()
        try:
            yield connection
        except grpc.RpcError as error:
            failure = status.from_rpc_error(error)
            if isinstance(failure, CoordinatorUnreachableError):
                failure = self._location.silence(connection.place, failure.message)
            raise failure from None
        except DecodeError:
            raise PayloadCorruptError("a message of the coordinator cannot be read") from None
        except ValueError:
            # gRPC's answer to a call on a channel that was closed.
            if self.closed.is_set():
                raise CancelledError("the client was closed") from None
            raise
        finally:
            connection.leave()

    def unary(
        self, name: str, request: Any, timeout: float | None, *, is_request: bool = False
    ) -> Any:
        """Makes one of the small calls, whose messages are of classes of their own, hence Any.

        `is_request` says that `timeout` is what is left of the time of a request.

        Raises:
            CoordinatorUnreachableError: no coordinator answers, or not in time.
            StageError: what the call fails with.
        """
        seconds = STATE_SECONDS if timeout is None else timeout
        with self.calling() as connection:
            place = connection.place
            call = getattr(connection, name)
            try:
                return call(request, timeout=seconds, metadata=connection.metadata)
            except grpc.RpcError as error:
                failure = status.from_rpc_error(error)
                if is_request or not isinstance(failure, DeadlineExceededError):
                    raise
            # One that runs would have answered.
            raise self._location.silence(place, f"no answer came within {seconds:g} s")

    def state(self, timeout: float | None, *, is_request: bool = False) -> state.CoordinatorState:
        """Returns what runs where, and why; see `unary`."""
        answer: pb.GetPlacementResponse = self.unary(
            "get_placement", pb.GetPlacementRequest(), timeout, is_request=is_request
        )
        return state.from_message(answer.state)

    def typed(self, pipeline: str, port: str, given: Given, deadline: Deadline) -> Value:
        """Returns what was given for a port as a value, asking for the port where that matters.

        Raises:
            StageError: there is no such port, it cannot hold that, or it cannot be asked for.
        """
        if not needs_port(given):
            # What has no type of the wire at all is refused when it is encoded.
            return given  # type: ignore[return-value]
        with self.calling() as connection:
            if connection.ports is None:
                left = deadline.seconds_left()
                connection.ports = ports_of(self.state(left, is_request=left is not None))
            return value_of(pipeline, port, given, connection.ports)

    def _connected(self) -> Connection:
        with self._lock:
            if self.closed.is_set():
                raise CancelledError("the client was closed")
            place = self._location.here()
            if self._connection is None or self._connection.place != place:
                if self._connection is not None:
                    self._connection.retire()
                self._connection = Connection(place)
            return self._connection.use()
