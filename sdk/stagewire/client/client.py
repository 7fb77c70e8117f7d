"""The blocking client of one coordinator."""

import contextlib
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from stagewire.client import state
from stagewire.client.call import Call
from stagewire.client.core.requests import (
    Order,
    Source,
    UnaryRequest,
    check_sources,
    gathered,
    result_of,
)
from stagewire.client.core.retrying import Attempts, Budget
from stagewire.client.deadline import Deadline
from stagewire.client.given import Given, check_seconds
from stagewire.client.line import STATE_SECONDS, Line
from stagewire.client.location import GivenLocation, StateFolder
from stagewire.client.orders import make_order
from stagewire.client.result import Result
from stagewire.client.session import Session
from stagewire.endpoint import default_state_folder
from stagewire.errors import StageError
from stagewire.tensor import Value
from stagewire.v1 import coordinator_pb2 as pb


class Client:
    """Runs pipelines of one coordinator. May be used by several threads; close it at the end."""

    def __init__(self, address: str, token: str) -> None:
        self._line = Line(GivenLocation(address, token))
        self._budget = Budget()

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; calls that still run are cancelled."""
        self._line.close()

    def run(
        self,
        pipeline: str,
        inputs: Mapping[str, Given],
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Result:
        """Runs a pipeline on one item an input and returns everything that came out.

        Numbers of Python, and lists of them, take the element type of their input. A request that
        is `idempotent` may run more than once: it is sent again after failures that may pass, as
        `stagewire.errors` says which, within `timeout`. Without it nothing is sent twice.

        Inputs that exceed one message go by `infer`, unseen. Outputs that exceed one message do so
        only together with such inputs; use `infer` where they may.

        Raises:
            FieldInvalidError: an input is unknown or has no wire type, or `timeout` is no time.
            TensorMismatchError: an input is missing, or not what its port takes.
            MessageTooBigError: a tensor is over its limit, or the outputs exceed one message.
            DeadlineExceededError: `timeout`, in seconds, or a deadline of the plan passed.
            CoordinatorUnreachableError: no coordinator answers.
            StageError: the request failed.
        """
        order = make_order(pipeline, request_id, outputs, is_idempotent=idempotent)
        return self._run(order, inputs, timeout)

    def infer(
        self,
        pipeline: str,
        inputs: Mapping[str, Source] | None = None,
        *,
        timeout: float | None = None,
        request_id: str | None = None,
        outputs: Iterable[str] | None = None,
        idempotent: bool = False,
    ) -> Call:
        """Returns a call whose items go out and come in at the same time; it starts when entered.

        Each of `inputs` is a value or an iterable of values: threads of the call send them, and end
        the input after the last. The others are for `Call.send` and `Call.end`. A request that is
        `idempotent` takes all of its inputs here, as what can be read again; it is sent again as
        `run` does, as long as no output has come.

        Raises:
            FieldInvalidError: `timeout` is no time, or an input cannot be read again.
        """
        order = make_order(pipeline, request_id, outputs, is_idempotent=idempotent)
        return self._infer(order, inputs or {}, timeout)

    def session(self, pipeline: str, *, idle_timeout: float | None = None) -> Session:
        """Returns a session of a pipeline, which opens when it is entered.

        It ends by itself after `idle_timeout` seconds without a request; without a time the
        coordinator chooses one.

        Raises:
            FieldInvalidError: `idle_timeout` is no time.
        """
        return Session(self._line, pipeline, idle_timeout, run=self._run, infer=self._infer)

    def placement(self, timeout: float = STATE_SECONDS) -> state.CoordinatorState:
        """Returns what runs where, and why.

        Raises:
            FieldInvalidError: `timeout` is no time.
            CoordinatorUnreachableError: no coordinator answers, or not in time.
            StageError: the call failed.
        """
        return self._line.state(check_seconds("timeout", timeout))

    def watch(self, timeout: float | None = None) -> Iterator[state.CoordinatorState]:
        """Iterates over the state now and after every change; closing the iterator ends it.

        Raises:
            FieldInvalidError: `timeout` is no time; said before anything is taken.
            CoordinatorUnreachableError: no coordinator answers, or it went away.
            StageError: the call failed.
        """
        return self._watch(check_seconds("timeout", timeout))

    # --- requests ---

    def _run(self, order: Order, inputs: Mapping[str, Given], timeout: float | None) -> Result:
        deadline = Deadline(timeout)
        attempts = Attempts(self._budget, is_idempotent=order.is_idempotent)
        while True:
            try:
                values = {
                    port: self._line.typed(order.pipeline, port, given, deadline)
                    for port, given in inputs.items()
                }
                result = self._run_once(order, values, attempts.number, deadline)
            except StageError as failure:
                delay = attempts.fail(failure, deadline.left(), random.random())
                if delay is None or self._line.closed.wait(delay):
                    raise
            else:
                attempts.succeed()
                return result

    def _run_once(
        self, order: Order, values: Mapping[str, Value], attempt: int, deadline: Deadline
    ) -> Result:
        request = UnaryRequest(order, values)
        if not request.fits:
            return self._run_in_chunks(order, values, attempt, deadline)
        with self._line.calling() as connection:
            message: bytes = connection.run(
                request.message(attempt),
                timeout=deadline.seconds_left(),
                metadata=connection.metadata,
            )
            return result_of(message, attempt)

    def _run_in_chunks(
        self, order: Order, values: Mapping[str, Value], attempt: int, deadline: Deadline
    ) -> Result:
        # One attempt: what came out of it is given to nobody before its end.
        once = Attempts(Budget(), is_idempotent=False)
        once.number = attempt
        with self._call(order, values, once, deadline.seconds_left()) as call:
            if not order.is_idempotent:
                # An input that is missing ends without an item, which the coordinator refuses.
                call.end()
            outputs = [(output.port, output.value) for output in call]
            return gathered(outputs, call.receipt, attempt)

    def _infer(self, order: Order, sources: Mapping[str, Source], timeout: float | None) -> Call:
        check_sources(order, sources)
        attempts = Attempts(self._budget, is_idempotent=order.is_idempotent)
        return self._call(order, sources, attempts, check_seconds("timeout", timeout))

    def _call(
        self,
        order: Order,
        sources: Mapping[str, Source],
        attempts: Attempts,
        timeout: float | None,
    ) -> Call:
        return Call(
            order,
            sources,
            start=self._stream,
            typed=lambda port, given: self._line.typed(
                order.pipeline, port, given, Deadline(timeout)
            ),
            attempts=attempts,
            timeout=timeout,
        )

    @contextlib.contextmanager
    def _stream(self, messages: Iterator[bytes], timeout: float | None) -> Iterator[Any]:
        with self._line.calling() as connection:
            yield connection.infer(messages, timeout=timeout, metadata=connection.metadata)

    def _watch(self, timeout: float | None) -> Iterator[state.CoordinatorState]:
        with self._line.calling() as connection:
            stream = connection.watch_state(
                pb.WatchStateRequest(), timeout=timeout, metadata=connection.metadata
            )
            try:
                for response in stream:
                    yield state.from_message(response.state)
            finally:
                stream.cancel()


def connect(state: Path | None = None, plan: str | None = None) -> Client:
    """Returns a client of the coordinator that runs on this machine; connects when first used.

    `state` is its state folder, by default the user's own. `plan` is the name of the plan that it
    must run. When the coordinator is started again, the next call of the client finds it.

    Raises:
        CoordinatorUnreachableError: none runs there, or it runs another plan.
        PathForbiddenError: the endpoint file is not closed to other users.
    """
    folder = StateFolder(default_state_folder() if state is None else Path(state), plan)
    client = Client(*folder.here())
    client._line = Line(folder)
    return client
