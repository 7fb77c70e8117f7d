"""`hop`: 1 KiB from worker to worker through the coordinator, beside an empty unary call."""

import asyncio
import contextlib
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc
import numpy as np

from benchmarks.arms.coordinator import RunningCoordinator, running
from benchmarks.arms.entry import Settings, Turn
from benchmarks.arms.meter import CpuMeter, batch
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

WORDS: Final = 128
"""int64 in an item: 1 KiB."""
LIMIT: Final = 1.5
_WARM_UP: Final = 50
_FLOOR: Final = "unary"


@dataclass(slots=True)
class Product:
    """A coordinator and two workers that stamp items."""

    coordinator: RunningCoordinator
    count: int
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return self.coordinator.roles

    def perform(self, step: str) -> Turn:
        """Sends a batch through one worker, then one through both."""
        near, near_cpu = self._send("near")
        far, far_cpu = self._send("far")
        return Turn(
            {
                **batch("hop", far),
                "way": batch("way", near)["way"],
                # What enters and leaves costs the same in both, so that the hop is left.
                "hop_cpu": far_cpu - near_cpu,
                "item_cpu": far_cpu,
            }
        )

    def _send(self, pipeline: str) -> tuple[list[float], float]:
        """Sends items one at a time; stages have stamped them when they come back."""
        times = []
        meter = CpuMeter([self.coordinator.pid])
        with self.coordinator.client.infer(pipeline) as call:
            for _ in range(_WARM_UP):
                call.send("item", np.zeros(WORDS, np.int64))
                next(call)
            with meter:
                for _ in range(self.count):
                    sent = time.monotonic_ns()
                    call.send("item", np.zeros(WORDS, np.int64))
                    stamps = np.asarray(next(call).value)
                    # Received and sent by the first worker, then by the second.
                    whole = time.monotonic_ns() - sent
                    hop = stamps[2] - stamps[1] if pipeline == "far" else whole
                    times.append(float(hop) / 1e3)
            call.end()
            for _ in call:
                pass
        return times, meter.seconds / self.count * 1e6


@dataclass(slots=True)
class Floor:
    """An empty call of `grpc.aio` to another process."""

    server: UnaryServer
    runner: asyncio.Runner
    count: int
    facts: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Sequence[int]]:
        """Process ids by what they are."""
        return {"server": [self.server.pid]}

    def perform(self, step: str) -> Turn:
        """Makes a batch of calls."""
        return Turn(batch("hop", self.runner.run(self._call())))

    async def _call(self) -> list[float]:
        times = []
        async with grpc.aio.insecure_channel(self.server.address) as channel:
            method = channel.unary_unary(f"/{SERVICE}/{METHOD}", None, None)
            for _ in range(_WARM_UP):
                await method(b"")
            for _ in range(self.count):
                start = time.monotonic_ns()
                await method(b"")
                times.append((time.monotonic_ns() - start) / 1e3)
        return times


def plan() -> dict[str, Any]:  # a plan as JSON
    """Returns a plan of two workers; pipeline `near` stays in one of them."""
    port = {"type": "int64", "shape": ["words<=1024"], "stream": True}
    stage = {"options": {"stamp": True}, "inputs": {"item": port}, "outputs": {"item": port}}
    return fake_plan(
        "hop",
        {"first": stage, "second": stage},
        {
            "far": {
                "inputs": {"item": "first.item"},
                "edges": [["first.item", "second.item"]],
                "outputs": {"item": "second.item"},
            },
            "near": {
                "inputs": {"item": "first.item"},
                "edges": [],
                "outputs": {"item": "first.item"},
            },
        },
    )


@contextlib.contextmanager
def product(settings: Settings) -> Iterator[Product]:
    """Brings the product up."""
    folder = Path(settings["folder"])
    path = write_plan(folder, plan(), settings.get("fields", {}))
    with running(path, folder / "state") as coordinator:
        facts = {**placement_facts(coordinator), "code": own_worker_code()}
        yield Product(coordinator, settings["count"], facts)


@contextlib.contextmanager
def floor(settings: Settings) -> Iterator[Floor]:
    """Starts a server of an empty call."""
    with UnaryServer.running() as server, asyncio.Runner() as runner:
        yield Floor(server, runner, settings["count"], {})


def parts(options: Namespace) -> tuple[Part, ...]:
    """Returns both arms, which stay up."""
    arms = {
        SUBJECT: python_arm(f"{__name__}:product", "two workers", count=options.batch),
        _FLOOR: python_arm(f"{__name__}:floor", "empty grpc.aio call", count=options.batch),
    }
    return (Part(arms, (Step("items", options.rounds),)),)


def add_options(parser: ArgumentParser) -> None:
    """Adds what only this benchmark has."""
    parser.add_argument("--batch", type=int, default=500, help="items of a round")


BENCHMARK: Final = Benchmark(
    name="hop",
    title="1 KiB from worker to worker",
    metrics=(
        Metric("hop", "Hop, or empty call", "us", digits=0, band=0.15, is_charted=True),
        Metric("hop_p10", "the same, 10th percentile", "us", digits=0),
        Metric("hop_p99", "the same, 99th percentile", "us", digits=0),
        Metric("way", "Client to one worker and back", "us", digits=0),
        Metric("hop_cpu", "Coordinator's CPU, a hop", "us", digits=0),
        Metric("item_cpu", "Coordinator's CPU, an item in, one hop, out", "us", digits=0),
    ),
    comparisons=(
        Comparison(
            "hop",
            "Hop by empty unary call (goal)",
            Cell("hop"),
            Cell("hop", _FLOOR),
            LIMIT,
            band=0.10,
        ),
    ),
    parts=parts,
    rounds=20,
    add_options=add_options,
    reach="coordinator",
)
