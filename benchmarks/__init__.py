"""Benchmark programs: what the product costs beside doing the same work without it.

`python -m benchmarks voice` and `hop`; docs/benchmarks.md says what is measured, and how.
"""
