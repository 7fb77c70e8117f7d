"""Folders of demos that were killed: the next demo takes them along, and no others."""

import pytest

from .conftest import wait_until_gone

pytestmark = pytest.mark.integration


def test_the_next_demo_removes_what_a_killed_one_left_and_nothing_of_a_living_one(program):
    killed = program.start("demo", "--fake", "--no-speech", "--keep")
    killed.wait_for("  coordinator run ")
    workers = killed.children()
    killed.process.kill()
    killed.end()
    wait_until_gone(workers)
    [left] = program.temporary.iterdir()
    living = program.start("demo", "--fake", "--no-speech", "--keep")
    living.wait_for("  coordinator run ")
    [kept] = program.temporary.iterdir()
    assert kept != left

    result = program.run("demo", "--fake", "--no-speech")

    assert result.returncode == 0, result.stderr
    assert list(program.temporary.iterdir()) == [kept]
    status = program.run("status", "--state", kept)
    assert status.returncode == 0, status.stderr
