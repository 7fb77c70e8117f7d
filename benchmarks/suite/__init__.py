"""Every benchmark: one module each, which declares its arms and metrics."""

from typing import Final

from benchmarks.judging.declarations import Benchmark
from benchmarks.suite import hop, imports, unary, voice

BENCHMARKS: Final[dict[str, Benchmark]] = {
    module.BENCHMARK.name: module.BENCHMARK for module in (voice, hop, unary, imports)
}
"""Benchmarks by name, in the order of the page."""
