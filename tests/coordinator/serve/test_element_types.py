"""Items of every element type, from a client through a worker and back."""

import numpy as np
import pytest

from coordinator.facts.ports import DataTypeName
from stagewire.bits import STORAGE, array_of
from stagewire.tensor import DataType, encode
from testkit import plans
from testkit.plans import pipeline, stage
from testkit.running import running

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("leak_probe")]

PORTS = {
    name.value: {"type": name.value, "shape": ["n<=200001"], "stream": False}
    for name in DataTypeName
}
PLAN = plans.plan(
    {"echo": stage("a", inputs=PORTS, outputs=PORTS)},
    {
        "echo": pipeline(
            {name: f"echo.{name}" for name in PORTS}, {name: f"echo.{name}" for name in PORTS}
        )
    },
)


def values(count):
    """An odd number of elements of each type."""
    for data_type in DataType:
        if data_type.is_string:
            element = "añ" if data_type is DataType.UTF8 else b"\xff\0"
            yield data_type.spelling, np.full(min(count, 1001), element, object)
        elif data_type in STORAGE:
            elements = ([1, 0, 3, 1, 2] * (count // 5 + 1))[:count]
            yield data_type.spelling, array_of(data_type, elements, (count,))
        else:
            yield data_type.spelling, (np.arange(count) % 7).astype(data_type.spelling)


def test_plans_and_the_wire_name_the_same_types():
    assert {name.value for name in DataTypeName} == {item.spelling for item in DataType}


@pytest.mark.parametrize("count", [5, 200_001])
async def test_a_worker_echoes_items_of_every_type(tmp_path, count):
    async with running(tmp_path, PLAN) as it:
        for name, value in values(count):
            result = await it.run("echo", dict(values(5)) | {name: value})

            back = result.output(name)
            assert encode(back)[0] == encode(value)[0]
            assert encode(back)[1] == encode(value)[1]
