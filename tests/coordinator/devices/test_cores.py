"""The cores of made-up machines, and of this one."""

import os
from pathlib import Path

import pytest

from coordinator.devices.cores import probe_cores
from coordinator.devices.probing import ProbeFailure, Unavailable
from coordinator.facts.cores import HostCores, parse_cores, spell_cores

pytestmark = pytest.mark.unit


def make_machine(root: Path, blocks: list[str], allowed: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/cpuinfo").write_text("\n\n".join(blocks))
    (root / "proc/self/status").write_text(f"Name:\tx\nCpus_allowed_list:\t{allowed}\n")


def block(number: int, core: int, package: int = 0) -> str:
    return f"processor\t: {number}\nphysical id\t: {package}\ncore id\t\t: {core}"


def test_hardware_threads_of_one_physical_core_are_together(tmp_path):
    make_machine(tmp_path, [block(number, number % 2) for number in range(4)], "0-3")

    assert probe_cores(tmp_path) == HostCores(((0, 2), (1, 3)))


def test_the_same_core_number_of_another_package_is_another_core(tmp_path):
    make_machine(tmp_path, [block(0, 0, 0), block(1, 0, 1)], "0-1")

    assert probe_cores(tmp_path) == HostCores(((0,), (1,)))


def test_only_what_is_allowed_and_there_counts(tmp_path):
    make_machine(tmp_path, [block(number, number // 2) for number in range(4)], "1-127")

    assert probe_cores(tmp_path) == HostCores(((1,), (2, 3)))


def test_where_the_kernel_does_not_say_each_stands_alone(tmp_path):
    make_machine(tmp_path, ["processor\t: 0", "processor\t: 1"], "0-1")

    assert probe_cores(tmp_path) == HostCores(((0,), (1,)))


@pytest.mark.parametrize("allowed", ["none", "0-", "7", ""])
def test_a_list_that_makes_no_sense_is_told(tmp_path, allowed):
    make_machine(tmp_path, [block(0, 0)], allowed)

    found = probe_cores(tmp_path)

    assert isinstance(found, Unavailable)
    assert found.failure is ProbeFailure.MALFORMED


def test_this_machine_has_the_cores_of_this_process():
    found = probe_cores()

    assert isinstance(found, HostCores)
    assert found.usable == os.sched_getaffinity(0)


@pytest.mark.parametrize("text", ["0", "0-3", "0,2-3,7", "5,9"])
def test_a_list_of_cores_reads_back_as_it_was_written(text):
    assert spell_cores(parse_cores(text)) == text


def test_a_quota_bounds_what_runs_at_once():
    assert HostCores(((0,), (1,), (2,)), 2.5).at_once == 2
    assert HostCores(((0,), (1,)), 0.5).at_once == 1
    assert HostCores(((0,), (1,))).at_once == 2
