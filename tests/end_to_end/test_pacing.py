"""Two answers at once from one voice: each is heard while the other is made."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from stagewire.playback import playback_gaps

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(2400)]

RATE = 22_050
REQUEST_SECONDS = 900.0
OPENING = "The story begins in a small town by the sea. And "
"""A sentence ends where the next one begins."""
SENTENCES = [
    "every morning the boats went out before the sun was up.",
    "The baker had been awake for hours by that time, and so had his daughter.",
    "Nobody in the street ever asked where the flour came from.",
    "On Sundays the bells rang twice, once for the living and once for the dead.",
    "The old lighthouse keeper wrote letters that he never sent to anyone.",
    "When winter came the harbour froze, and the children walked on the ice.",
    "A stranger arrived in March with a suitcase full of maps.",
    "He stayed until the summer, and then he was gone without a word.",
]
REST = " ".join(SENTENCES)


class Listener:
    """One request, and when each piece of audio came."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.arrivals: list[tuple[float, int]] = []
        self.hears = threading.Event()

    def listen(self, client, pipeline, inputs) -> None:
        began = time.monotonic()
        try:
            with client.infer(pipeline, inputs, timeout=REQUEST_SECONDS) as call:
                for output in call:
                    if output.port == "reply":
                        self.log.append(self.name)
                        self.arrivals.append((time.monotonic() - began, len(output.value)))
                        self.hears.set()
        finally:
            self.hears.set()

    def report(self) -> None:
        seconds = sum(count for _, count in self.arrivals) / RATE
        gaps = [round(gap.seconds, 2) for gap in playback_gaps(self.arrivals, RATE)]
        print(
            f"{self.name}: {seconds:.1f} s in {len(self.arrivals)} pieces, the first after"
            f" {self.arrivals[0][0]:.2f} s, the last after {self.arrivals[-1][0]:.2f} s;"
            f" gaps of {gaps} s"
        )


def told(go_on: threading.Event) -> Iterator[str]:
    """Yields an opening, and the rest once everybody hears something."""
    yield OPENING
    assert go_on.wait(REQUEST_SECONDS)
    yield REST


def test_two_texts_at_once_are_spoken_by_turns(voice):
    log: list[str] = []
    listeners = [Listener(name, log) for name in ("one", "other")]
    go_on = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(listener.listen, voice, "say", {"text": told(go_on)})
            for listener in listeners
        ]
        for listener in listeners:
            assert listener.hears.wait(REQUEST_SECONDS)
        go_on.set()
        for run in runs:
            run.result(REQUEST_SECONDS)
    for listener in listeners:
        listener.report()

    one, other = (
        [place for place, name in enumerate(log) if name == listener.name] for listener in listeners
    )
    assert len(one) == len(other) >= len(SENTENCES)
    assert one[-1] > other[1], "the other one waited until the first was done"
    assert other[-1] > one[1]


def test_two_questions_at_once_are_both_answered(voice):
    log: list[str] = []
    questions = {
        "rivers": "Tell me about rivers, where they come from and where they go.",
        "bread": "Tell me about bread, how it is made and who eats it.",
    }
    listeners = {name: Listener(name, log) for name in questions}
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(listeners[name].listen, voice, "chat", {"prompt": question})
            for name, question in questions.items()
        ]
        for run in runs:
            run.result(REQUEST_SECONDS)

    for listener in listeners.values():
        listener.report()
        assert len(listener.arrivals) >= 2
