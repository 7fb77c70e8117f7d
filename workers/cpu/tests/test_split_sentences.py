"""Sentences from a text that grows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def ramp(text: str, size: int = 3, first: int = 20, most: int = 160) -> list[str]:
    splitter = SentenceSplitter(SplitterSettings(8, most, first))
    found = []
    for at in range(0, len(text), size):
        found += splitter.push(text[at : at + size])
    return found + splitter.finish()


RIVERS = (
    "Rivers begin in the mountains, where snow melts in spring, and they gather water from every"
    " valley; after many days, when the land is flat, they slow down, grow wide, and reach the sea."
    " People have lived beside them, by choice, for as long as anyone can tell, and still do."
)


@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_the_first_pieces_end_with_clauses_and_grow_until_they_are_sentences(size):
    assert ramp(RIVERS, size) == [
        "Rivers begin in the mountains,",
        "where snow melts in spring, and they gather water from every valley;",
        "after many days, when the land is flat, they slow down, grow wide, and reach the sea.",
        "People have lived beside them, by choice, for as long as anyone can tell, and still do.",
    ]


def test_a_first_piece_leaves_as_soon_as_its_clause_has_ended():
    splitter = SentenceSplitter(SplitterSettings(8, 160, 20))
    assert splitter.push("Rivers begin in the mountains") == []
    assert splitter.push(",") == []
    assert splitter.push(" where") == ["Rivers begin in the mountains,"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("It has 1,000,000 people and more, as they say.", "It has 1,000,000 people and more,"),
        ("We met on January 3, 2020 in Rome, by chance.", "We met on January 3, 2020 in Rome,"),
        ("The train leaves at 10:45 sharp, so hurry.", "The train leaves at 10:45 sharp,"),
        ('He said "give me the bread," and left us.', 'He said "give me the bread,"'),
        ("Well, yes, it is true, and it is good.", "Well, yes, it is true,"),
        ("No clause ends in here at all. Next one.", "No clause ends in here at all."),
        (
            "今日はとてもいい天気ですから、みんなで公園へ行きましょう。",
            "今日はとてもいい天気ですから、みんなで公園へ行きましょう。",
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_commas_that_end_no_clause_are_left_alone(text, first, size):
    assert ramp(text, size)[0] == first


def test_without_a_ramp_sentences_stay_whole():
    assert ramp(RIVERS, first=0, most=400) == split(RIVERS)


WORDS = st.text("abc XY12,.;:!?'\"—、\n", max_size=300)


@given(WORDS, st.integers(1, 40), st.integers(0, 60), st.integers(40, 200))
def test_pieces_are_bounded_joined_they_are_the_text_and_they_do_not_depend_on_how_it_came(
    text, size, first, most
):
    pieces = ramp(text, size, first, most)

    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(0 < len(piece) <= most for piece in pieces)
    assert pieces == ramp(text, 1, first, most)
