"""Plans of fake stages, as plain values that are written down as JSON, which is YAML too."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FLOATS = {"type": "float32", "shape": ["n<=4000000"], "stream": True}
ONE = {"type": "float32", "shape": ["n<=16"], "stream": False}
TEXT = {"type": "utf8", "shape": [], "stream": True}

Plan = dict[str, Any]


def deed(do: str, on: str = "item", **more: Any) -> dict[str, Any]:
    """One line of a fault script."""
    return {"do": do, "on": on, **more}


def stage(
    worker: str = "a",
    *script: Mapping[str, Any],
    inputs: Mapping[str, Any] | None = None,
    outputs: Mapping[str, Any] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A fake stage; by default a stream of floats goes in at `x` and out at `y`."""
    made: dict[str, Any] = {
        "executor": "fake",
        "workers": [worker],
        "inputs": {"x": FLOATS} if inputs is None else dict(inputs),
        "outputs": {"y": FLOATS} if outputs is None else dict(outputs),
        "memory": {"resident": "1MiB"},
    }
    if script:
        made["options"] = {"script": list(script)}
    return made | fields


def pipeline(
    inputs: Mapping[str, str], outputs: Mapping[str, str], *edges: tuple[str, str]
) -> dict[str, Any]:
    return {"inputs": dict(inputs), "outputs": dict(outputs), "edges": list(map(list, edges))}


def plan(
    stages: Mapping[str, Mapping[str, Any]],
    pipelines: Mapping[str, Mapping[str, Any]],
    workers: Mapping[str, Mapping[str, Any]] | None = None,
    **fields: Any,
) -> Plan:
    """A plan whose workers are fakes run by this interpreter."""
    names = dict.fromkeys(name for entry in stages.values() for name in entry["workers"])
    fake = {"kind": "fake", "interpreter": {"linux": sys.executable}}
    return {
        "apiVersion": "stagewire/v1",
        "kind": "Plan",
        "metadata": {"name": "test"},
        "workers": {name: fake | dict((workers or {}).get(name, {})) for name in names},
        "stages": dict(stages),
        "pipelines": dict(pipelines),
        # Most of a small machine's memory is free while tests run; what is tested brings its own.
        "policies": {"os_reserve": "64MiB"},
    } | fields


def single(*script: Mapping[str, Any], **fields: Any) -> Plan:
    """One stage `one` on worker `a`, and the pipeline `p` from `x` to `y`."""
    return plan(
        {"one": stage("a", *script, **fields)}, {"p": pipeline({"x": "one.x"}, {"y": "one.y"})}
    )


def chain(
    first: Sequence[Mapping[str, Any]] = (),
    second: Sequence[Mapping[str, Any]] = (),
    first_fields: Mapping[str, Any] | None = None,
    second_fields: Mapping[str, Any] | None = None,
) -> Plan:
    """Stages `one` on `a` and `two` on `b`; `p` runs both, `p1` and `p2` one of them each."""
    return plan(
        {
            "one": stage("a", *first, **(first_fields or {})),
            "two": stage("b", *second, **(second_fields or {})),
        },
        {
            "p": pipeline({"x": "one.x"}, {"y": "two.y"}, ("one.y", "two.x")),
            "p1": pipeline({"x": "one.x"}, {"y": "one.y"}),
            "p2": pipeline({"x": "two.x"}, {"y": "two.y"}),
        },
    )


def write(folder: Path, content: Plan) -> Path:
    path = folder / "plan.yaml"
    path.write_text(json.dumps(content, indent=1))
    return path
