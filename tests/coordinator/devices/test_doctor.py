from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.devices.cpu import HostCpu
from coordinator.devices.doctor import Check, CheckState, Examination, examine
from coordinator.devices.memory import HostMemory
from coordinator.devices.probing import ProbeFailure, Unavailable
from coordinator.devices.storage import Storage

pytestmark = pytest.mark.unit

MIB, GIB = 1 << 20, 1 << 30
CPU = HostCpu("Test CPU 9000", 8, 4, 8, None, ("avx2",))
MEMORY = HostMemory(16 * GIB, 8 * GIB, 0, 0, None, None)
ROOM = Storage(Path("/caches/someone"), 100 * GIB, 50 * GIB)
UNREAD = Unavailable(ProbeFailure.DENIED, "it is forbidden")
SOUND = Examination((3, 12, 4), CPU, MEMORY, ROOM, 590 * MIB, ROOM, "0.8.3", None)


def check(name: str, **changes: Any) -> Check:
    return next(item for item in examine(replace(SOUND, **changes)) if item.name == name)


def test_on_a_sound_machine_everything_is_well_and_nothing_is_to_be_done():
    checks = examine(SOUND)

    assert [item.name for item in checks] == [
        "python",
        "cores",
        "memory",
        "cgroup",
        "disk",
        "uv",
        "shm",
        "loopback",
    ]
    assert all(item.state is CheckState.OK and not item.remedy for item in checks)


@pytest.mark.parametrize(
    ("name", "changes", "state", "found", "remedy"),
    [
        ("python", {"python_version": (3, 10, 1)}, "fail", "3.10.1", "3.11 to 3.14"),
        ("python", {"python_version": (3, 15, 0)}, "warn", "3.15.0", "3.11 to 3.14"),
        ("cores", {"cpu": replace(CPU, affinity_cores=1)}, "warn", "1 usable of 8", "2 cores"),
        ("cores", {"cpu": replace(CPU, quota_cores=1.5)}, "warn", "1 usable of 8", "2 cores"),
        ("memory", {"memory": replace(MEMORY, available_bytes=GIB - 1)}, "warn", "free", "close"),
        (
            "cgroup",
            {"memory": replace(MEMORY, cgroup_limit_bytes=GIB, cgroup_free_bytes=5)},
            "warn",
            "5 B free of a limit of 1.0 GiB",
            "raise",
        ),
        ("disk", {"storage": replace(ROOM, free_bytes=90 * MIB)}, "fail", "90 MiB", "free 500 MiB"),
        ("uv", {"uv_version": None}, "fail", "not found", "pip install uv"),
        ("shm", {"shared_memory": replace(ROOM, free_bytes=MIB)}, "warn", "1.0 MiB", "64 MiB"),
        ("cores", {"cpu": UNREAD}, "warn", "denied: it is forbidden", "readable"),
        ("memory", {"memory": UNREAD}, "warn", "denied: it is forbidden", "--ram"),
        ("cgroup", {"memory": UNREAD}, "warn", "denied: it is forbidden", "readable"),
        ("disk", {"storage": UNREAD}, "warn", "denied: it is forbidden", "readable"),
        ("shm", {"shared_memory": UNREAD}, "warn", "denied: it is forbidden", "/dev/shm"),
        ("loopback", {"loopback": UNREAD}, "fail", "it is forbidden", "ip link set lo up"),
    ],
)
def test_a_thing_that_is_broken_changes_its_own_check_and_no_other(
    name: str, changes: dict[str, Any], state: str, found: str, remedy: str
):
    broken = check(name, **changes)

    assert broken.state == state
    assert found in broken.found
    assert remedy in broken.remedy
    unwell = {item.name for item in examine(replace(SOUND, **changes)) if item.state != "ok"}
    # One probe reads the memory of the host and that of its groups.
    assert unwell == ({"memory", "cgroup"} if changes.get("memory") is UNREAD else {name})


def test_a_limit_with_room_and_swap_are_shown():
    memory = replace(
        MEMORY,
        swap_total_bytes=2 * GIB,
        swap_free_bytes=GIB,
        cgroup_limit_bytes=4 * GIB,
        cgroup_free_bytes=3 * GIB,
    )

    assert check("memory", memory=memory).found == "8.0 GiB free of 16 GiB, swap 1.0 GiB of 2.0 GiB"
    assert check("cgroup", memory=memory).found == "3.0 GiB free of a limit of 4.0 GiB"
