"""The asynchronous client under the surface of the blocking one, so that one suite tests both.

Each call is handed to the client's loop, which runs in another thread, and waited for.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from stagewire.client import AsyncCall, AsyncClient, Client, connect, connect_async
from stagewire.endpoint import Endpoint
from testkit.waiting import PATIENCE_SECONDS

KINDS: Final = ("blocking", "asynchronous")
_SECONDS: Final = 10 * PATIENCE_SECONDS


@contextlib.contextmanager
def loop_in_thread() -> Iterator[asyncio.AbstractEventLoop]:
    """Runs a loop beside the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def made(kind: str, loop: asyncio.AbstractEventLoop, address: str, token: str) -> Any:
    """Makes a client of a kind, of an address and a token."""
    if kind == "blocking":
        return Client(address, token)
    return ClientFace(loop, AsyncClient(address, token))


def connected(kind: str, loop: asyncio.AbstractEventLoop, *values: Any, **named: Any) -> Any:
    """Makes a client of a kind, of a state folder."""
    if kind == "blocking":
        return connect(*values, **named)
    return ClientFace(loop, connect_async(*values, **named))


@contextlib.asynccontextmanager
async def beside(kind: str, endpoint: Endpoint) -> AsyncIterator[Any]:
    """Gives a client to a test on a loop, which uses it in other threads."""
    client = made(kind, asyncio.get_running_loop(), endpoint.address, endpoint.token)
    try:
        yield client
    finally:
        await asyncio.to_thread(client.close)


class _Face:
    def __init__(self, loop: asyncio.AbstractEventLoop, behind: Any) -> None:
        self._loop = loop
        self._behind = behind

    def _do(self, awaitable: Any) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self._loop).result(_SECONDS)

    def _call(self, function: Any, *values: Any, **named: Any) -> Any:
        """Calls what is no coroutine, on the loop as its users do."""

        async def call() -> Any:
            return function(*values, **named)

        return self._do(call())


class ClientFace(_Face):
    """Looks like `Client`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, client: AsyncClient) -> None:
        super().__init__(loop, client)

    def __enter__(self) -> "ClientFace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._do(self._behind.close())

    def run(self, *values: Any, **named: Any) -> Any:
        return self._do(self._behind.run(*values, **named))

    def infer(self, *values: Any, **named: Any) -> "CallFace":
        return CallFace(self._loop, self._behind.infer(*values, **named))

    def session(self, *values: Any, **named: Any) -> "SessionFace":
        return SessionFace(self._loop, self._behind.session(*values, **named))

    def placement(self, *values: Any, **named: Any) -> Any:
        return self._do(self._behind.placement(*values, **named))

    def watch(self, *values: Any, **named: Any) -> Any:
        states = self._behind.watch(*values, **named)

        def iterate() -> Any:
            try:
                while True:
                    try:
                        state = self._do(anext(states))
                    except StopAsyncIteration:
                        return
                    yield state
            finally:
                self._do(states.aclose())

        return iterate()


class SessionFace(_Face):
    """Looks like `Session`."""

    def __enter__(self) -> "SessionFace":
        self._do(self._behind.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._do(self._behind.__aexit__(*error))

    def run(self, *values: Any, **named: Any) -> Any:
        return self._do(self._behind.run(*values, **named))

    def infer(self, *values: Any, **named: Any) -> "CallFace":
        return CallFace(self._loop, self._behind.infer(*values, **named))

    def renew(self) -> Any:
        return self._do(self._behind.renew())

    def close(self) -> None:
        self._do(self._behind.close())

    @property
    def session_id(self) -> Any:
        return self._behind.session_id

    @property
    def lease_seconds(self) -> Any:
        return self._behind.lease_seconds


class CallFace(_Face):
    """Looks like `Call`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: AsyncCall) -> None:
        super().__init__(loop, call)

    def __enter__(self) -> "CallFace":
        self._do(self._behind.__aenter__())
        return self

    def __exit__(self, *error: object) -> None:
        self._do(self._behind.__aexit__(*error))

    def __iter__(self) -> "CallFace":
        return self

    def __next__(self) -> Any:
        try:
            return self._do(self._behind.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def send(self, *values: Any) -> None:
        self._do(self._behind.send(*values))

    def end(self, *ports: Any) -> None:
        self._do(self._behind.end(*ports))

    def cancel(self) -> None:
        self._call(self._behind.cancel)

    @property
    def request_id(self) -> Any:
        return self._do(self._behind.request_id)

    @property
    def receipt(self) -> Any:
        return self._call(lambda: self._behind.receipt)

    @property
    def attempts(self) -> Any:
        return self._call(lambda: self._behind.attempts)
