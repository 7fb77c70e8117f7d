"""The fake coordinator itself: a server on loopback around a desk."""

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from stagewire.channel import make_blocking_server
from stagewire.client.async_client import AsyncClient
from stagewire.client.client import Client
from stagewire.client.testing.desk import Desk, Hold
from stagewire.client.testing.pipelines import FakePipeline, as_pipeline
from stagewire.client.testing.request import FakeRequest, Scripted
from stagewire.client.testing.service import Service
from stagewire.endpoint import Endpoint, write_endpoint
from stagewire.errors import (
    FieldInvalidError,
    SessionLostError,
    StageError,
    every_failure,
)

__all__ = ["FakeCoordinator", "Hold"]

_THREADS: Final = 64


class FakeCoordinator:
    """Serves functions as pipelines to real clients, as long as its `with` lasts.

    A pipeline is a function or a `FakePipeline`. Its functions run on threads and may wait for
    events of the test.
    """

    def __init__(self, pipelines: Mapping[str, "FakePipeline | Callable[..., Any]"]) -> None:
        self._desk = Desk({name: as_pipeline(name, given) for name, given in pipelines.items()})
        self.token = secrets.token_urlsafe(32)
        self.address = ""
        """Host and port, once entered."""
        self._client: Client | None = None

    def __enter__(self) -> "FakeCoordinator":
        self._threads = ThreadPoolExecutor(_THREADS, "stagewire-fake")
        self._server = make_blocking_server(self._threads)
        service = Service(self._desk, self.token)
        self._server.add_generic_rpc_handlers((service.handler(),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        for hold in self._desk.holds.values():
            hold.release()
        if self._client is not None:
            self._client.close()
        self._server.stop(grace=None).wait()
        self._threads.shutdown()

    @property
    def client(self) -> Client:
        """A client that is connected; closed with the fake coordinator."""
        if self._client is None:
            self._client = Client(self.address, self.token)
        return self._client

    def async_client(self) -> AsyncClient:
        """Returns an asynchronous client, to be closed by its `async with`."""
        return AsyncClient(self.address, self.token)

    def write_endpoint(self, folder: Path) -> Path:
        """Writes an endpoint file, for code that calls `connect` on a state folder."""
        endpoint = Endpoint(self.address, self.token, self.address, self.token, os.getpid(), "fake")
        return write_endpoint(folder, endpoint)

    @property
    def requests(self) -> Sequence[FakeRequest]:
        """Every request that came to a pipeline, each attempt by itself, in order."""
        return tuple(self._desk.requests)

    def fail(
        self,
        pipeline: str,
        failure: "StageError | str",
        *,
        times: int = 1,
        after_outputs: int = 0,
    ) -> None:
        """Has the next requests of a pipeline fail.

        `failure` is an error, or the reason of one such as "LANE_FULL". With `after_outputs` that
        many items come out first; otherwise a request is refused at once.

        Raises:
            FieldInvalidError: there is no such reason.
            PipelineUnknownError: there is no such pipeline.
        """
        error = failure if isinstance(failure, StageError) else _failure(failure)
        self._desk.pipeline(pipeline)
        self._desk.scripts[pipeline].extend([Scripted(error, after_outputs)] * times)

    def hold(self, pipeline: str) -> Hold:
        """Keeps requests of a pipeline from running until the hold is released, or its `with` ends.

        Raises:
            PipelineUnknownError: there is no such pipeline.
        """
        self._desk.pipeline(pipeline)
        return self._desk.holds.setdefault(pipeline, Hold())

    def lose_sessions(self) -> None:
        """Has every open session fail as when a worker was lost."""
        for session in self._desk.sessions.values():
            session.failure = SessionLostError("a worker was lost; open a new session")

    def expire_sessions(self) -> None:
        """Ends every open session as when its lease ran out."""
        self._desk.sessions.clear()


def _failure(reason: str) -> StageError:
    for failure in every_failure():
        if failure.reason == reason:
            return failure(f"a test said that this request fails with {reason}")
    raise FieldInvalidError(
        f"there is no reason {reason!r}; `stagewire.errors` has them", field="failure"
    )
