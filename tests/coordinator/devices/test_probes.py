import os
import threading
from pathlib import Path

import pytest

from coordinator.devices.cpu import HostCpu, probe_cpu
from coordinator.devices.memory import HostMemory, probe_memory
from coordinator.devices.probing import ProbeFailure, Unavailable, run_probe
from coordinator.devices.storage import Storage, probe_shared_memory, probe_storage

pytestmark = pytest.mark.unit

GIB = 1 << 30
LIMIT_SECONDS = 60.0
V2_MOUNT = "30 25 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_core(number: int, flags: str) -> str:
    return (
        f"processor\t: {number}\nmodel name\t: Test CPU 9000\nphysical id\t: 0\n"
        f"core id\t\t: {number // 2}\nflags\t\t: {flags}\n\n"
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine of 4 hardware threads and 16 GiB without control groups."""
    flags = "fpu avx2 avx512f avx_vnni"
    write(
        tmp_path,
        {
            "proc/cpuinfo": "".join(make_core(number, flags) for number in range(4)),
            "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-127\n",
            "proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n"
            "SwapTotal: 1024 kB\nSwapFree: 512 kB\nHugePages_Total: 0\n",
        },
    )
    return tmp_path


def cpu_of(root: Path) -> HostCpu:
    cpu = probe_cpu(root, LIMIT_SECONDS)
    assert isinstance(cpu, HostCpu), cpu
    return cpu


def memory_of(root: Path) -> HostMemory:
    memory = probe_memory(root, LIMIT_SECONDS)
    assert isinstance(memory, HostMemory), memory
    return memory


def test_a_plain_machine_is_read_as_it_is(root: Path):
    assert cpu_of(root) == HostCpu("Test CPU 9000", 4, 2, 4, None, ("avx2", "avx512", "vnni"))
    assert cpu_of(root).usable_cores == 4
    assert memory_of(root) == HostMemory(16 * GIB, 8 * GIB, 1 << 20, 1 << 19, None, None)


def test_only_cores_of_the_affinity_set_are_usable(root: Path):
    write(root, {"proc/self/status": "Cpus_allowed_list:\t0,2-3\n"})

    assert cpu_of(root).usable_cores == 3


def test_a_feature_that_one_core_lacks_does_not_count(root: Path):
    write(root, {"proc/cpuinfo": make_core(0, "avx2 amx_tile") + make_core(1, "avx2")})

    assert cpu_of(root).features == ("avx2",)


def test_an_arm_machine_without_names_is_read_too(root: Path):
    cores = [f"processor\t: {number}\nFeatures\t: fp asimddp bf16\n" for number in range(2)]
    write(root, {"proc/cpuinfo": "\n".join(cores)})

    assert cpu_of(root) == HostCpu("unnamed CPU", 2, None, 2, None, ("vnni", "bf16"))


@pytest.mark.parametrize(
    ("quotas", "usable"),
    [
        ({"a": "max 100000", "a/b": "max 100000"}, 4),
        ({"a": "250000 100000", "a/b": "max 100000"}, 2),
        ({"a": "250000 100000", "a/b": "150000 100000"}, 1),
        ({"a": "10000 100000", "a/b": "max 100000"}, 1),
    ],
)
def test_the_smallest_quota_up_the_tree_bounds_the_cores(
    root: Path, quotas: dict[str, str], usable: int
):
    write(root, {"proc/self/cgroup": "0::/a/b\n", "proc/self/mountinfo": V2_MOUNT})
    write(root, {f"sys/fs/cgroup/{group}/cpu.max": text for group, text in quotas.items()})

    assert cpu_of(root).usable_cores == usable


def test_a_quota_of_version_1_bounds_the_cores(root: Path):
    folder = "sys/fs/cgroup/cpu,cpuacct/a"
    write(
        root,
        {
            "proc/self/cgroup": "4:memory:/a\n3:cpu,cpuacct:/a\n",
            "proc/self/mountinfo": V1_MOUNTS,
            f"{folder}/cpu.cfs_quota_us": "300000\n",
            f"{folder}/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    )

    assert cpu_of(root).quota_cores == 3


def test_the_smallest_memory_limit_up_the_tree_counts(root: Path):
    write(
        root,
        {
            "proc/self/cgroup": "0::/a/b\n",
            "proc/self/mountinfo": V2_MOUNT,
            "sys/fs/cgroup/a/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/a/memory.current": f"{3 * GIB}\n",
            "sys/fs/cgroup/a/memory.stat": f"anon 5\ninactive_file {GIB}\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/b/memory.high": f"{5 * GIB}\n",
            "sys/fs/cgroup/a/b/memory.current": f"{GIB}\n",
        },
    )

    memory = memory_of(root)

    assert (memory.cgroup_limit_bytes, memory.cgroup_free_bytes) == (4 * GIB, 2 * GIB)


def test_a_memory_limit_of_version_1_counts_and_its_word_for_none_does_not(root: Path):
    folder = "sys/fs/cgroup/memory"
    write(
        root,
        {
            "proc/self/cgroup": "4:memory:/a\n",
            "proc/self/mountinfo": V1_MOUNTS,
            f"{folder}/memory.limit_in_bytes": "9223372036854771712\n",
            f"{folder}/a/memory.limit_in_bytes": f"{2 * GIB}\n",
            f"{folder}/a/memory.usage_in_bytes": f"{GIB}\n",
        },
    )

    memory = memory_of(root)

    assert (memory.cgroup_limit_bytes, memory.cgroup_free_bytes) == (2 * GIB, GIB)


@pytest.mark.parametrize("group", ["/docker/abc", "/docker/abc/../../elsewhere", "/not/seen"])
def test_in_a_container_the_top_of_the_mount_is_its_own_group(root: Path, group: str):
    mount = V2_MOUNT.replace(" / ", " /docker/abc ", 1)
    write(
        root,
        {
            "proc/self/cgroup": f"0::{group}\n",
            "proc/self/mountinfo": mount,
            "sys/fs/cgroup/memory.max": f"{GIB}\n",
            "sys/fs/cgroup/memory.current": "0\n",
        },
    )

    assert memory_of(root).cgroup_limit_bytes == GIB


@pytest.mark.parametrize(
    ("name", "text", "failure"),
    [
        ("proc/cpuinfo", None, ProbeFailure.MISSING),
        ("proc/cpuinfo", "nonsense", ProbeFailure.MALFORMED),
        ("proc/cpuinfo", "x" * (9 << 20), ProbeFailure.MALFORMED),
        ("proc/self/status", None, ProbeFailure.MISSING),
        ("proc/self/status", "Name: python\n", ProbeFailure.MALFORMED),
        ("proc/self/status", "Cpus_allowed_list: zero\n", ProbeFailure.MALFORMED),
        ("sys/fs/cgroup/cpu.max", "many 100000", ProbeFailure.MALFORMED),
        ("sys/fs/cgroup/cpu.max", "100000 0", ProbeFailure.MALFORMED),
    ],
)
def test_a_broken_cpu_source_is_a_typed_reason(
    root: Path, name: str, text: str | None, failure: ProbeFailure
):
    write(root, {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2_MOUNT})
    (root / "sys/fs/cgroup").mkdir(parents=True)
    if text is None:
        (root / name).unlink()
    else:
        write(root, {name: text})

    found = probe_cpu(root, LIMIT_SECONDS)

    assert isinstance(found, Unavailable)
    assert found.failure is failure


@pytest.mark.parametrize(
    ("name", "text", "failure"),
    [
        ("proc/meminfo", None, ProbeFailure.MISSING),
        ("proc/meminfo", "", ProbeFailure.MALFORMED),
        ("proc/meminfo", "MemTotal: 1 kB\n", ProbeFailure.MALFORMED),
        ("sys/fs/cgroup/memory.max", "plenty\n", ProbeFailure.MALFORMED),
    ],
)
def test_a_broken_memory_source_is_a_typed_reason(
    root: Path, name: str, text: str | None, failure: ProbeFailure
):
    write(root, {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": V2_MOUNT})
    (root / "sys/fs/cgroup").mkdir(parents=True)
    if text is None:
        (root / name).unlink()
    else:
        write(root, {name: text})

    found = probe_memory(root, LIMIT_SECONDS)

    assert isinstance(found, Unavailable)
    assert found.failure is failure


def test_a_folder_in_place_of_a_file_is_unreadable(root: Path):
    (root / "proc/meminfo").unlink()
    (root / "proc/meminfo").mkdir()

    found = probe_memory(root, LIMIT_SECONDS)

    assert isinstance(found, Unavailable)
    assert found.failure is ProbeFailure.UNREADABLE


def test_a_source_that_may_not_be_read_is_denied():
    def deny() -> None:
        raise PermissionError(13, "Permission denied", "/proc/meminfo")

    found = run_probe("memory", deny, LIMIT_SECONDS)

    assert found == Unavailable(ProbeFailure.DENIED, "memory: Permission denied: /proc/meminfo")


def test_a_source_that_never_answers_ends_at_the_limit(root: Path):
    (root / "proc/meminfo").unlink()
    os.mkfifo(root / "proc/meminfo")

    found = probe_memory(root, 0.05)

    assert found == Unavailable(ProbeFailure.TIMED_OUT, "memory did not answer within 0.05 s")
    # The reader waits for a writer; it is let go so that no thread is left behind.
    (root / "proc/meminfo").open("wb").close()
    for thread in threading.enumerate():
        if thread.name == "probe memory":
            thread.join(LIMIT_SECONDS)
            assert not thread.is_alive()


def test_a_mistake_inside_a_probe_is_not_taken_for_an_answer():
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_probe("memory", fail, LIMIT_SECONDS)


def test_this_machine_can_be_read():
    assert cpu_of(Path("/")).usable_cores <= (os.cpu_count() or 1)
    assert 0 < memory_of(Path("/")).available_bytes <= memory_of(Path("/")).total_bytes


def test_room_is_read_for_a_folder_that_does_not_exist_yet(tmp_path: Path):
    storage = probe_storage(tmp_path / "not" / "yet", LIMIT_SECONDS)

    assert isinstance(storage, Storage)
    assert storage.path == tmp_path
    assert 0 < storage.free_bytes <= storage.total_bytes


def test_shared_memory_that_is_not_mounted_is_missing(tmp_path: Path):
    found = probe_shared_memory(tmp_path, LIMIT_SECONDS)

    assert isinstance(found, Unavailable)
    assert found.failure is ProbeFailure.MISSING
