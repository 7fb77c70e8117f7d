"""Function `split_sentences`: a growing text to sentences, each as early as it is sure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from stagewire.errors import FieldInvalidError
from stagewire.tensor import DataType, Value
from stagewire.worker.executor import Execution, Progress, StageOrder
from stagewire.worker.order import OptionReader, PortRule
from worker_cpu.functions.function import Function

_WORD: Final = re.compile(r"\S+")
_ABBREVIATIONS: Final = frozenset(
    _WORD.findall(
        "mr mrs ms dr prof sr jr st mt ft gen col lt sgt capt rev hon gov sen rep pres dept univ"
        " inc ltd corp bros vs etc al approx ave blvd e.g i.e cf viz a.m p.m u.s u.k u.n"
    )
)
_BEFORE_NUMBERS: Final = frozenset(
    _WORD.findall(
        "no nos vol vols fig figs eq eqs ch sec p pp ed tel ext min max est jan feb mar apr jun jul"
        " aug sep sept oct nov dec mon tue wed thu fri"
    )
)
"""Abbreviations only where a number follows; elsewhere some are words that end sentences."""
_ENDS_ANYWAY: Final = frozenset(
    ("etc", "al", "a.m", "p.m", "u.s", "u.k", "u.n", "inc", "ltd", "corp", "jr", "sr")
)
"""Abbreviations that often close a sentence: they do when a capital follows."""
_BOUNDARY: Final = re.compile(
    r"(?P<marks>[.!?\u2026]+)(?P<closers>[\"'\u2019\u201d)\]}*_]*)(?P<gap>\s+)"
    r"|(?P<wide>[\u3002\uff01\uff1f]+[\u300d\u300f\u201d\uff09]*)"
    r"|(?P<line>\n\s*)"
)
_LAST_WORD: Final = re.compile(r"(\S+)$")
_OPENERS: Final = "\"'\u2018\u201c([{*_-"
_CLAUSE_END: Final = re.compile(r"[,;:\u2014\u2013\uff0c\u3001]\s*|\s+")
_EARLY_END: Final = re.compile(
    r"[,;:\u2014\u2013][\"'\u2019\u201d)\]}*_]*\s+(?=(?P<after>\S))"
    r"|[\uff0c\u3001\uff1b\uff1a]"
)
"""The end of a clause: unlike in numbers and times of day, with white space behind."""
_LIST_DIGITS: Final = 3
_DOUBLINGS: Final = 16
"""Enough to be over any `max_characters`."""


@dataclass(frozen=True, slots=True)
class SplitterSettings:
    """Rules of a splitter."""

    min_characters: int
    """A shorter sentence is joined to the next one."""
    max_characters: int
    """A longer one is cut at the end of a clause."""
    first_characters: int = 0
    """The first piece may end with a clause once it has so many; 0 for sentences alone.

    Each following one needs twice as many as the one before, until that is over `max_characters`.
    """


class SentenceSplitter:
    """Collects pieces of a text into sentences."""

    def __init__(self, settings: SplitterSettings) -> None:
        self._settings = settings
        self._text = ""
        self._searched = 0
        """Everything before it holds no end of a sentence."""
        self._taken = 0
        """Pieces that have left."""

    def push(self, piece: str) -> list[str]:
        """Takes the next piece; returns the sentences that it completes."""
        self._text += piece
        return list(self._completed())

    def finish(self) -> list[str]:
        """Returns what is left at the end of the text."""
        sentences = list(self._completed())
        rest = self._take(len(self._text))
        return [*sentences, rest] if rest else sentences

    def _completed(self) -> Iterator[str]:
        while True:
            end = self._next_end()
            end = self._early_end(self._searched if end is None else end) or end
            if end is None and len(self._text.strip()) > self._settings.max_characters:
                end = self._clause_end()
            if end is None:
                return
            sentence = self._take(end)
            if sentence:
                yield sentence

    def _next_end(self) -> int | None:
        for match in _BOUNDARY.finditer(self._text, self._searched):
            verdict = self._is_end(match)
            if verdict is None:
                self._searched = match.start()
                return None
            is_long = len(self._text[: match.end()].strip()) >= self._settings.min_characters
            if verdict and is_long and match.end() <= self._settings.max_characters:
                return match.end()
        # What may still grow into an end is looked at again: marks, closers and the gap after them.
        settled = self._text.rstrip().rstrip(
            _OPENERS + ")]}\u2019\u201d.!?\u2026\u3002\uff01\uff1f"
        )
        self._searched = max(self._searched, len(settled))
        return None

    def _early_end(self, bound: int) -> int | None:
        """Returns the end of the first clause that is long enough, if it lies before a bound."""
        least = self._settings.first_characters << min(self._taken, _DOUBLINGS)
        if not 0 < least <= self._settings.max_characters:
            return None
        for match in _EARLY_END.finditer(self._text, 0, bound):
            length = len(self._text[: match.end()].strip())
            before = self._text[: match.start()][-1:]
            is_of_date = before.isdigit() and (match["after"] or "").isdigit()
            if least <= length <= self._settings.max_characters and not is_of_date:
                return match.end()
        return None

    def _is_end(self, match: "re.Match[str]") -> bool | None:
        """Whether a match ends a sentence; None while the text after it is not there yet."""
        if match["marks"] is None or "\n" in match["gap"]:
            return True
        if match["marks"] != ".":
            # An ellipsis or "?!" inside a sentence goes on in lower case.
            return self._follows_capital(match)
        word = _LAST_WORD.search(self._text, 0, match.start("marks"))
        last = word[1].strip("\"'\u2018\u201c([{*_").lower() if word else ""
        is_first = word is not None and not self._text[: word.start()].strip()
        if is_first and last.isdigit() and len(last) <= _LIST_DIGITS:
            return False
        following = self._text[match.end() :][:1]
        if last in _BEFORE_NUMBERS and (not following or following.isdigit()):
            return False if following else None
        if len(last) == 1 and last.isalpha() and last != "i":
            return False
        if last in _ABBREVIATIONS and last not in _ENDS_ANYWAY:
            return False
        return self._follows_capital(match)

    def _follows_capital(self, match: "re.Match[str]") -> bool | None:
        following = self._text[match.end() :].lstrip(_OPENERS + " \t")
        return not following[0].islower() if following else None

    def _clause_end(self) -> int:
        """Returns where a sentence that is too long is cut."""
        limit = self._settings.max_characters
        ends = [match.end() for match in _CLAUSE_END.finditer(self._text, 0, limit)]
        marked = [end for end in ends if self._text[:end].rstrip()[-1:] in ",;:\u2014\u2013"]
        for candidates in (marked, ends):
            late = [end for end in candidates if end > limit // 2]
            if late:
                return late[-1]
        return limit

    def _take(self, end: int) -> str:
        sentence = " ".join(self._text[:end].split())
        self._text = self._text[end:]
        self._searched = 0
        self._taken += bool(sentence)
        return sentence


class SplitSentencesStage:
    """Splits the text of each execution."""

    def __init__(self, settings: SplitterSettings) -> None:
        self._settings = settings

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """One thread: the calling one."""
        return {"threads": "1"}

    def example(self) -> Mapping[str, Sequence[Value]]:
        """Returns two sentences in three pieces."""
        return {"text": ["This is one senten", "ce. And this", " is the second one."]}

    def run(self, execution: Execution) -> None:
        """Sends each sentence as soon as it is complete."""
        splitter = SentenceSplitter(self._settings)
        for piece in execution.items("text"):
            for sentence in splitter.push(str(piece)):
                execution.send("sentence", sentence)
        for sentence in splitter.finish():
            execution.send("sentence", sentence)

    def release(self) -> None:
        """Holds nothing."""


def _load(order: StageOrder, progress: Progress) -> SplitSentencesStage:
    options = OptionReader(order)
    settings = SplitterSettings(
        min_characters=options.integer("min_characters", 8, low=1, high=1_000),
        max_characters=options.integer("max_characters", 400, low=40, high=10_000),
        first_characters=options.integer("first_characters", 0, low=0, high=1_000),
    )
    options.finish()
    if settings.min_characters > settings.max_characters:
        raise FieldInvalidError(
            f"stage {order.stage_id}: option 'min_characters' must not be over 'max_characters'"
        )
    progress("ready")
    return SplitSentencesStage(settings)


SPLIT_SENTENCES: Final = Function(
    name="split_sentences",
    inputs=(PortRule("text", DataType.UTF8),),
    outputs=(PortRule("sentence", DataType.UTF8, is_stream=True),),
    load=_load,
)
