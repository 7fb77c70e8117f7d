"""`unary`: `Run` of 1 KiB by the client, beside an empty unary call in the same style."""

import contextlib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import numpy as np

from benchmarks.arms.coordinator import RunningCoordinator, running
from benchmarks.arms.entry import Settings, Turn
from benchmarks.arms.meter import CpuMeter, batch, timed
from benchmarks.arms.placement import own_worker_code, placement_facts
from benchmarks.arms.plans import fake_plan, write_plan
from benchmarks.arms.unary_server import METHOD, SERVICE, UnaryServer
from benchmarks.judging.declarations import (
    SUBJECT,
    Benchmark,
    Cell,
    Comparison,
    Metric,
    Part,
    Step,
    python_arm,
)
from stagewire.client import Result

PAYLOAD_BYTES: Final = 1024
LIMIT: Final = 1.5
_WARM_UP: Final = 50
_FLOOR: Final = "grpc"


@dataclass(slots=True)
class Product:
    """A blocking client, a coordinator and one fake stage."""

    coordinator: RunningCoordinator
    count: int
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return self.coordinator.roles

    def perform(self, step: str) -> Turn:
        """Makes a batch of calls; the last result is compared."""
        sent = np.arange(PAYLOAD_BYTES, dtype=np.uint8)
        results: list[Result] = []

        def call() -> None:
            results[:] = [self.coordinator.client.run("echo", {"item": sent})]

        with CpuMeter([self.coordinator.pid]) as meter:
            times = timed(call, self.count, _WARM_UP)
        if not np.array_equal(np.asarray(results[0].output("item")), sent):
            raise RuntimeError("what came back is not what was sent")
        calls = self.count + _WARM_UP
        return Turn({**batch("call", times), "cpu": meter.seconds / calls * 1e6})


@dataclass(slots=True)
class Floor:
    """A blocking channel and an empty call to another process."""

    server: UnaryServer
    channel: grpc.Channel
    count: int
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return {"server": [self.server.pid]}

    def perform(self, step: str) -> Turn:
        """Makes a batch of calls."""
        method = self.channel.unary_unary(f"/{SERVICE}/{METHOD}", None, None)
        return Turn(batch("call", timed(lambda: method(b""), self.count, _WARM_UP)))


def plan() -> dict[str, Any]:  # a plan as JSON
    """Returns a plan of one stage that gives back what it gets."""
    port = {"type": "uint8", "shape": [f"bytes<={PAYLOAD_BYTES}"]}
    return fake_plan(
        "unary",
        {"echo": {"inputs": {"item": port}, "outputs": {"item": port}}},
        {"echo": {"inputs": {"item": "echo.item"}, "outputs": {"item": "echo.item"}}},
    )


@contextlib.contextmanager
def product(settings: Settings) -> Iterator[Product]:
    """Brings the product up."""
    folder = Path(settings["folder"])
    path = write_plan(folder, plan(), settings.get("fields", {}))
    with running(path, folder / "state", is_fake=True) as coordinator:
        facts = {**placement_facts(coordinator), "code": own_worker_code()}
        yield Product(coordinator, settings["count"], facts)


@contextlib.contextmanager
def floor(settings: Settings) -> Iterator[Floor]:
    """Starts a server of an empty call."""
    with (
        UnaryServer.running() as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        yield Floor(server, channel, settings["count"], {})


def parts(options: Namespace) -> tuple[Part, ...]:
    """Returns both arms, which stay up."""
    arms = {
        SUBJECT: python_arm(f"{__name__}:product", "Client.run", count=options.batch),
        _FLOOR: python_arm(f"{__name__}:floor", "empty blocking call", count=options.batch),
    }
    return (Part(arms, (Step("calls", options.rounds),)),)


def add_options(parser: ArgumentParser) -> None:
    """Adds what only this benchmark has."""
    parser.add_argument("--batch", type=int, default=500, help="calls of a round")


BENCHMARK: Final = Benchmark(
    name="unary",
    title="Run of 1 KiB on one stage",
    metrics=(
        Metric("call", "Call", "us", digits=0, band=0.15, is_charted=True),
        Metric("call_p10", "the same, 10th percentile", "us", digits=0),
        Metric("call_p99", "the same, 99th percentile", "us", digits=0),
        Metric("cpu", "Coordinator's CPU, a call", "us", digits=0),
    ),
    comparisons=(
        Comparison(
            "call",
            "Run of 1 KiB by empty unary call",
            Cell("call"),
            Cell("call", _FLOOR),
            LIMIT,
            band=0.10,
        ),
    ),
    parts=parts,
    rounds=20,
    add_options=add_options,
    reach="coordinator",
)
