"""`hop`: 1 KiB from worker to worker through the coordinator, beside an empty unary call."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc
import numpy as np

from benchmarks import report
from benchmarks.coordinator_process import running
from benchmarks.figures import (
    Comparison,
    Criterion,
    compare,
    comparison_json,
    criterion_json,
    rotated,
    spread,
)
from benchmarks.plans import write_hop_plan
from benchmarks.processes import UsageMeter
from benchmarks.unary_server import METHOD, SERVICE
from stagewire.client import Client

WORDS: Final = 128
"""int64 in an item: 1 KiB."""
LIMIT: Final = 1.5
_WARM_UP: Final = 50
Groups: TypeAlias = Mapping[str, Sequence[int]]
"""Process ids by what they are."""
_SERIES: Final = ("far", "near", "unary")


@dataclass(frozen=True, slots=True)
class Batch:
    """Microseconds of one batch."""

    times: tuple[float, ...]
    """Hops in `far`; whole ways from the client and back in `near`; calls in `unary`."""
    cpu: float
    """Of the coordinator, by item."""
    other_cores: float


@dataclass(frozen=True, slots=True)
class Measured:
    """Batches of each series, one a round."""

    batches: Mapping[str, tuple[Batch, ...]]

    @property
    def comparison(self) -> Comparison:
        """Hops beside empty calls: medians of the rounds."""
        return compare(
            *(
                [spread(batch.times).median for batch in self.batches[name]]
                for name in ("far", "unary")
            )
        )

    def all_times(self, name: str) -> list[float]:
        """Returns every time of a series."""
        return [value for batch in self.batches[name] for value in batch.times]

    def cpu(self, name: str) -> float:
        """Returns the coordinator's CPU time by item, over all rounds."""
        batches = self.batches[name]
        return sum(batch.cpu for batch in batches) / len(batches)

    @property
    def cpu_of_hop(self) -> float:
        """What one hop adds: the items of `near` enter and leave as those of `far` do."""
        return self.cpu("far") - self.cpu("near")


def measure(folder: Path, *, rounds: int, batch: int) -> Measured:
    """Measures hops and calls in turns."""
    batches: dict[str, list[Batch]] = {name: [] for name in _SERIES}
    with (
        running(write_hop_plan(folder), folder / "state") as coordinator,
        _unary_server() as server,
        asyncio.Runner() as runner,
    ):
        groups = {
            "coordinator": (coordinator.pid,),
            "others": (*coordinator.workers, server.pid, os.getpid()),
        }
        for number in range(rounds):
            for name in rotated(_SERIES, number):
                if name == "unary":
                    found = runner.run(_call(server.port, batch, groups))
                else:
                    found = _send(coordinator.client, name, batch, groups)
                batches[name].append(found)
            last = {name: spread(batches[name][-1].times).median for name in _SERIES}
            print(
                f"round {number + 1}: hop {last['far']:.0f} us, unary {last['unary']:.0f} us",
                flush=True,
            )
    return Measured({name: tuple(items) for name, items in batches.items()})


def _send(client: Client, pipeline: str, count: int, groups: Groups) -> Batch:
    """Sends items one at a time; stages have stamped them when they come back."""
    times = []
    meter = UsageMeter(groups)
    with client.infer(pipeline) as call:
        for _ in range(_WARM_UP):
            call.send("item", np.zeros(WORDS, np.int64))
            next(call)
        with meter:
            for _ in range(count):
                sent = time.monotonic_ns()
                call.send("item", np.zeros(WORDS, np.int64))
                stamps = np.asarray(next(call).value)
                # Received and sent by the first worker, then by the second.
                hop = stamps[2] - stamps[1] if pipeline == "far" else time.monotonic_ns() - sent
                times.append(float(hop) / 1e3)
        call.end()
        for _ in call:
            pass
    return Batch(tuple(times), meter.cpu["coordinator"] / count * 1e6, meter.other_cores)


async def _call(port: int, count: int, groups: Groups) -> Batch:
    times = []
    meter = UsageMeter(groups)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        method = channel.unary_unary(f"/{SERVICE}/{METHOD}", None, None)
        for _ in range(_WARM_UP):
            await method(b"")
        with meter:
            for _ in range(count):
                start = time.monotonic_ns()
                await method(b"")
                times.append((time.monotonic_ns() - start) / 1e3)
    return Batch(tuple(times), meter.cpu["coordinator"] / count * 1e6, meter.other_cores)


@dataclass(frozen=True, slots=True)
class _UnaryServer:
    pid: int
    port: int


@contextlib.contextmanager
def _unary_server() -> Iterator[_UnaryServer]:
    command = [sys.executable, "-m", "benchmarks.unary_server"]
    root = Path(__file__).resolve().parents[1]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None:
                raise RuntimeError("the server has no standard output")
            yield _UnaryServer(process.pid, int(process.stdout.readline()))
        finally:
            process.kill()


def criteria(measured: Measured) -> tuple[Criterion, ...]:
    """Returns the goal of a hop."""
    return (Criterion("hop by empty unary call (goal)", measured.comparison.ratio, LIMIT),)


def lines(measured: Measured) -> str:
    """Returns the readable report."""
    comparison = measured.comparison
    return "\n\n".join(
        (
            report.spread_table(
                {
                    "hop, worker to worker": spread(measured.all_times("far")),
                    "client to one worker and back": spread(measured.all_times("near")),
                    "empty aio unary call": spread(measured.all_times("unary")),
                },
                "us",
            ),
            f"hop by unary call: {comparison.ratio:.2f}"
            f" (rounds {min(comparison.ratios):.2f}..{max(comparison.ratios):.2f})",
            f"coordinator's CPU: {measured.cpu_of_hop:.0f} us a hop;"
            f" {measured.cpu('far'):.0f} us an item that enters, hops once and leaves",
            report.criteria_table(criteria(measured)),
        )
    )


def to_json(measured: Measured) -> dict[str, Any]:  # JSON
    """Returns everything, for a report file; of the times their spreads."""
    return {
        "comparison": comparison_json(measured.comparison),
        "criteria": [criterion_json(item) for item in criteria(measured)],
        "coordinator_cpu_microseconds": {
            "hop": measured.cpu_of_hop,
            "far": measured.cpu("far"),
            "near": measured.cpu("near"),
        },
        "batches": {
            name: [
                {"cpu": item.cpu, "other_cores": item.other_cores, **asdict(spread(item.times))}
                for item in items
            ]
            for name, items in measured.batches.items()
        },
    }
