"""Sentences from a text that grows."""

import pytest

from worker_cpu.functions.split_sentences import SentenceSplitter, SplitterSettings

pytestmark = pytest.mark.unit


def split(text: str, size: int = 3, least: int = 1, most: int = 400) -> list[str]:
    splitter = SentenceSplitter(SplitterSettings(least, most))
    found = []
    for at in range(0, len(text), size):
        found += splitter.push(text[at : at + size])
    return found + splitter.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "sentences",
    [
        ["Hello there.", "How are you?", "Fine!"],
        ["Dr. Smith met Mrs. Jones at 5 p.m. on Jan. 3.", "They spoke."],
        ["Pi is 3.14159 and e is 2.71828.", "Both are numbers."],
        ['She said "Stop!" and left.', "He stayed."],
        ['"Is it true?"', "Nobody knew."],
        ["It costs approx. five dollars, e.g. at the market.", "Cheap."],
        ["Wait... what is this?", "A test?!", "Yes."],
        ["J. R. R. Tolkien wrote it.", "You read it."],
        ["We sell bread, cake, etc.", "Come in."],
        ["Visit example.com for more.", "Thanks."],
        ["So do I.", "And you?"],
        ["He said no.", "Then he read No. 5 and Fig. 2."],
        ["今日は。", "元気ですか\uff1f", "はい。"],
    ],
)
def test_sentences_are_found_whatever_the_pieces(sentences, size):
    assert split(" ".join(sentences), size) == sentences


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_lines_end_sentences_and_numbers_of_a_list_do_not(size):
    text = "Things to buy:\n1. Flour from the mill\n2. Eggs\n\nThat is all"
    assert split(text, size) == [
        "Things to buy:",
        "1. Flour from the mill",
        "2. Eggs",
        "That is all",
    ]


def test_a_sentence_leaves_as_soon_as_the_next_one_begins():
    splitter = SentenceSplitter(SplitterSettings(1, 400))
    assert splitter.push("It rains.") == []
    assert splitter.push(" ") == []
    assert splitter.push("W") == ["It rains."]
    assert splitter.push("e stay.") == []
    assert splitter.finish() == ["We stay."]


def test_a_short_sentence_waits_for_the_next():
    assert split("Yes. I will be there. No.", least=8) == ["Yes. I will be there.", "No."]


def test_a_long_sentence_is_cut_at_a_clause():
    text = "first we mix the flour with water, then we let it rest for an hour and bake it slowly"
    parts = split(text, most=45)
    assert parts[0] == "first we mix the flour with water,"
    assert " ".join(parts) == text
    assert max(map(len, parts)) <= 45


def test_a_long_word_is_cut_as_well():
    parts = split("x" * 1000, most=100)
    assert max(map(len, parts)) <= 100
    assert "".join(parts) == "x" * 1000


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_no_text_gives_no_sentence(text):
    assert split(text) == []


def test_nothing_is_lost_and_white_space_becomes_single():
    text = "One  two.   Three\tfour! Five (six.) Seven… eight. Mr. Nine."
    assert " ".join(split(text)) == " ".join(text.split())


def test_a_long_stream_is_not_searched_again_and_again():
    splitter = SentenceSplitter(SplitterSettings(1, 10_000))
    for _ in range(3_000):
        splitter.push("ab ")
    assert splitter._searched > 8_000
