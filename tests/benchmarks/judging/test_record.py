import json

import pytest

from benchmarks.judging.record import (
    Disturbance,
    Failure,
    RecordUnreadableError,
    from_json,
    to_json,
)

pytestmark = pytest.mark.unit


def test_a_record_comes_back_from_its_file_as_it_was(make_record):
    record = make_record(
        {"product": [1.0, None], "floor": [2.0, 3.0]},
        failures=(Failure("product", "turn", 2, "gone"),),
        disturbances=(Disturbance("product", "turn", (0.1,), (0.2,)),),
        notes=("a note",),
        knob={"title": "revision", "A": "x", "B": "y", "proof": "paths"},
    )

    assert from_json(json.loads(json.dumps(to_json(record)))) == record


@pytest.mark.parametrize("content", [[], {}, {"schema": 0}, {"schema": 1, "bench": "toy"}])
def test_what_is_no_record_is_refused(content):
    with pytest.raises(RecordUnreadableError):
        from_json(content)
