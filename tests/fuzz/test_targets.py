"""Every reader against arbitrary bytes, changed messages and all inputs that found a defect."""

import gc
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testkit.fuzz_corpus import SEEDS, inputs, read, seeds
from testkit.fuzz_targets import TARGETS

pytestmark = pytest.mark.unit

MOST_GROWTH_BYTES = 10 << 20


@pytest.mark.parametrize("target", TARGETS)
def test_the_committed_seeds_are_those_of_the_present_messages(target):
    assert read(SEEDS, target) == seeds()[target], "run: python tests/fuzz/run.py --write-seeds"


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_of_the_corpus_finds_a_defect(target):
    for raw in inputs(target).values():
        TARGETS[target](raw)


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_of_the_corpus_takes_much_memory(target):
    known = list(inputs(target).values())
    for raw in known:
        TARGETS[target](raw)
    gc.collect()
    tracemalloc.start()
    try:
        for raw in known:
            TARGETS[target](raw)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MOST_GROWTH_BYTES


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(raw=st.binary(max_size=300))
def test_arbitrary_bytes_are_read_or_refused(target, raw):
    TARGETS[target](raw)


@st.composite
def changed(draw, target):
    """Draws a seed with some of its bytes cut out, repeated, replaced or joined by others."""
    known = [raw for raw in inputs(target).values() if len(raw) < 3000]
    raw = draw(st.sampled_from(known))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(raw)))
        end = draw(st.integers(start, min(len(raw), start + 20)))
        put = draw(
            st.one_of(
                st.binary(max_size=8),
                st.just(raw[start:end] * 2),
                st.sampled_from([b"\xff" * 9 + b"\x01", b"\x80" * 10, b"\x7a\x00"]),
            )
        )
        raw = raw[:start] + put + raw[end:]
    return raw


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_changed_messages_are_read_or_refused(target, data):
    TARGETS[target](data.draw(changed(target)))
