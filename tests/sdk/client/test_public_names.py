"""What `stagewire.client` offers."""

import pytest

import stagewire.client

pytestmark = pytest.mark.unit

NAMES = [
    "AsyncCall",
    "AsyncClient",
    "AsyncSession",
    "Call",
    "Client",
    "ConstraintState",
    "CoordinatorState",
    "Grade",
    "HopReceipt",
    "LedgerState",
    "Output",
    "Phase",
    "PipelineState",
    "Receipt",
    "ReservationState",
    "Result",
    "Session",
    "StageReceipt",
    "StageState",
    "Table",
    "Verdict",
    "WorkerState",
    "audio",
    "connect",
    "connect_async",
    "image",
    "text",
    "write_wav",
]


def test_the_public_names_are_these():
    assert stagewire.client.__all__ == NAMES
    assert dir(stagewire.client) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name):
    assert getattr(stagewire.client, name).__name__ == name
    assert getattr(stagewire.client, name).__doc__


def test_another_name_is_not_there():
    with pytest.raises(AttributeError, match="Server"):
        _ = stagewire.client.Server
