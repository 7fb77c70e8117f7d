"""A coordinator is made once, whatever is agreed to after."""

import pytest

from coordinator.app.coordinator import Coordinator
from coordinator.app.settings import Settings
from coordinator.cli import up
from coordinator.cli.progress import Progress
from coordinator.cli.screen import Screen
from testkit import plans

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("is_agreed", [True, False])
def test_what_was_agreed_is_told_to_the_one_that_looked(tmp_path, monkeypatch, is_agreed):
    made = []

    class Counted(Coordinator):
        def __init__(self, *values):
            super().__init__(*values)
            made.append(self)

    monkeypatch.setattr(up, "Coordinator", Counted)
    settings = Settings(plans.write(tmp_path, plans.single()), tmp_path / "s", tmp_path / "c")
    screen = Screen()

    coordinator = up.prepare(
        settings, screen, Progress(screen), is_agreed=is_agreed, is_agreed_unasked=False
    )

    assert made == [coordinator]
    assert coordinator.preparation.is_download_allowed is is_agreed
