import pytest

from coordinator.reach.key import InterpreterIdentity, environment_key

pytestmark = pytest.mark.unit

INTERPRETER = InterpreterIdentity("3.12.4", "cpython-312-x86_64-linux-gnu", "linux-x86_64")


def key(**changed) -> str:
    parts = {
        "lock_sha256": "a" * 64,
        "interpreter": INTERPRETER,
        "project_digests": {"stagewire": "1", "worker-tiny": "2"},
    }
    return environment_key(**(parts | changed))


def test_the_same_parts_give_the_same_key_in_any_order():
    assert key() == key(project_digests={"worker-tiny": "2", "stagewire": "1"})


@pytest.mark.parametrize(
    "changed",
    [
        {"lock_sha256": "b" * 64},
        {"interpreter": InterpreterIdentity("3.12.5", INTERPRETER.abi, INTERPRETER.platform)},
        {"interpreter": InterpreterIdentity("3.12.4", "cpython-312d", INTERPRETER.platform)},
        {"interpreter": InterpreterIdentity("3.12.4", INTERPRETER.abi, "linux-aarch64")},
        {"project_digests": {"stagewire": "3", "worker-tiny": "2"}},
        {"project_digests": {"stagewire": "1", "worker-other": "2"}},
        {"project_digests": {"stagewire": "1"}},
        {"checkout": "/checkouts/someone"},
    ],
)
def test_every_part_changes_the_key(changed):
    assert key(**changed) != key()
