import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.plan.documents import read_document
from coordinator.plan.positions import Position, Positions, spell_path
from stagewire.limits import PLAN_BYTES, PLAN_DEPTH, PLAN_NODES

pytestmark = pytest.mark.unit


def problems_of(text):
    content = text if isinstance(text, bytes) else text.encode()
    document = read_document(content)
    return [
        (str(problem.position), spell_path(problem.path), problem.what)
        for problem in document.problems
    ]


def test_values_and_keys_have_their_positions():
    document = read_document(b"a:\n  b: [1, two]\n  'c' : {d: no}\n")

    assert document.value == {"a": {"b": [1, "two"], "c": {"d": "no"}}}
    assert document.is_complete
    assert not document.problems
    where = document.positions
    assert where.of_key(("a", "b")) == Position(2, 3)
    assert where.of_value(("a", "b")) == Position(2, 6)
    assert where.of_value(("a", "b", 1)) == Position(2, 10)
    assert where.of_key(("a", "b", 1)) == Position(2, 10)
    assert where.of_key(("a", "c", "d")) == Position(3, 10)
    assert where.of_value(("a", "c", "d")) == Position(3, 13)


def test_a_field_that_is_not_there_is_placed_at_what_would_hold_it():
    document = read_document(b"a:\n  b: 1\n")

    assert document.positions.of_key(("a", "x", "y")) == Position(1, 1)
    assert document.positions.of_value(("a", "b", "y")) == Position(2, 6)
    assert Positions({}, {}).of_key(("a",)) == Position(1, 1)


def test_columns_count_characters_not_bytes():
    document = read_document("{ä: ö, ü: 日本, x: 1}".encode())

    assert document.positions.of_value(("x",)) == Position(1, 18)


@pytest.mark.parametrize("text", ["a: no", "a: 'no'", 'a: "no"', "a: |-\n  no", "a: >-\n  no"])
def test_text_is_text_in_every_style(text):
    assert read_document(text.encode()).value == {"a": "no"}


@pytest.mark.parametrize("text", ["a: '1'", 'a: "1"', "a: |-\n  1"])
def test_a_quoted_number_is_text(text):
    assert read_document(text.encode()).value == {"a": "1"}


def test_keys_are_always_text():
    document = read_document(b"no: 1\n1: 2\nnull: 3\n1e9: 4\n~: 5\n")

    assert document.value == {"no": 1, "1": 2, "null": 3, "1e9": 4, "~": 5}


def test_a_byte_order_mark_is_ignored():
    assert read_document(b"\xef\xbb\xbfa: 1").value == {"a": 1}


def test_a_repeated_key_is_placed_at_the_second_and_names_the_first():
    document = read_document(b"a:\n  b: 1\n  c: 2\n  b: {deep: [3]}\n")

    assert [(problem.what, problem.remedy) for problem in document.problems] == [
        ("stands twice, first at 2:3", "remove one")
    ]
    assert document.problems[0].position == Position(4, 3)
    assert document.value == {"a": {"b": 1, "c": 2}}


def test_keys_that_differ_only_in_quotes_are_the_same():
    assert problems_of("a: 1\n'a': 2\n") == [("2:1", "a", "stands twice, first at 1:1")]


def test_aliases_anchors_and_tags_are_each_refused():
    assert problems_of("a: &x 1\nb: *x\nc: !!str 2\nd: !py 3\n&k e: 4\nf: &y {g: !t [1]}\n") == [
        ("1:4", "a", "has an anchor (&x)"),
        ("2:4", "b", "is an alias (*x)"),
        ("3:4", "c", "has a tag (tag:yaml.org,2002:str)"),
        ("4:4", "d", "has a tag (!py)"),
        ("5:1", "e", "has an anchor (&k)"),
        ("6:4", "f", "has an anchor (&y)"),
        ("6:11", "f.g", "has a tag (!t)"),
    ]


def test_a_bomb_of_aliases_stays_small():
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]

    document = read_document("\n".join(lines).encode())

    assert len(document.problems) == 60 + 59 * 2
    assert document.value["a59"] == [None, None]


@pytest.mark.parametrize(
    ("text", "position", "what"),
    [
        ("", "1:1", "is empty"),
        ("# nothing\n", "1:1", "is empty"),
        ("a: 1\n---\nb: 2\n", "2:1", "holds a second document"),
        ("%YAML 1.1\n---\na: 1\n", "1:1", "has a YAML directive"),
        ("%TAG ! tag:x,2026:\n---\na: 1\n", "1:1", "has a YAML directive"),
        ("? [a, b]\n: 1\n", "1:3", "has a key that is not a word"),
        ("? {a: b}\n: 1\n", "1:3", "has a key that is not a word"),
        ("a: 'open\n", "2:1", "is not YAML here: found unexpected end of stream"),
        ("a: [1, 2\nb: 3\n", "2:2", "is not YAML here: did not find expected ',' or ']'"),
        (
            "a: 1\n\tb: 2\n",
            "2:1",
            "is not YAML here: found a tab character that violates indentation",
        ),
        (
            "a: 1\n b: 2\n",
            "2:3",
            "is not YAML here: mapping values are not allowed in this context",
        ),
        ("a: b: c\n", "1:5", "is not YAML here: mapping values are not allowed in this context"),
        (
            "a: *\n",
            "1:5",
            "is not YAML here: did not find expected alphabetic or numeric character",
        ),
        ("a: 1\nbc", "2:3", "is not YAML here: could not find expected ':'"),
        (b"a: 1\nb: \xff\n", "2:4", "is not UTF-8 text"),
        ("a: 1\nb: x\x00y\n", "2:5", "holds the character '\\x00', which YAML forbids"),
        ("a: 1\r\nb: \x07\r\n", "2:4", "holds the character '\\x07', which YAML forbids"),
        ("a: \x1b[31m\n", "1:4", "holds the character '\\x1b', which YAML forbids"),
    ],
)
def test_a_text_that_cannot_be_read_is_refused_where_it_breaks(text, position, what):
    found = problems_of(text)

    assert len(found) == 1
    assert found[0][0] == position
    assert found[0][2] == what


def test_a_number_that_is_too_large_is_refused_with_its_field():
    assert problems_of(f"a: 1\nsha256: {'1' * 64}\nb: 12e{'3' * 61}") == [
        ("2:9", "sha256", "reads as a whole number beyond 64 bits"),
        ("3:4", "b", "reads as a number that is too large"),
    ]


def test_size_is_capped_before_anything_is_read():
    fits = b"a: 1 #" + b"x" * (PLAN_BYTES - 6)

    assert not read_document(fits).problems
    assert problems_of(fits + b"x") == [("1:1", "plan", f"has more than {PLAN_BYTES} bytes")]


def test_depth_is_capped():
    assert read_document(("[" * PLAN_DEPTH + "]" * PLAN_DEPTH).encode()).is_complete
    found = problems_of("[" * (PLAN_DEPTH + 1) + "]" * (PLAN_DEPTH + 1))
    assert found == [
        (f"1:{PLAN_DEPTH + 1}", "[0]" * PLAN_DEPTH, f"is nested deeper than {PLAN_DEPTH} levels")
    ]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "{? "])
def test_a_megabyte_of_nesting_is_refused_at_once(opening):
    document = read_document((opening * (PLAN_BYTES // len(opening))).encode())

    assert not document.is_complete
    assert len(document.problems) == 1
    assert len(document.positions.values) <= PLAN_DEPTH + 1


def test_count_is_capped():
    assert not problems_of("[" + "1," * (PLAN_NODES - 1) + "]")
    found = problems_of("[" + "1," * PLAN_NODES + "]")
    assert [what for _, _, what in found] == [f"has more than {PLAN_NODES} values"]


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_no_bytes_make_the_reader_fail(content):
    document = read_document(content)

    assert document.is_complete or document.problems


@given(st.text(st.sampled_from(list("ab:-[]{},&*!?|>'\"%@#~ \n\t0.e")), max_size=60))
@settings(max_examples=500)
def test_no_yaml_makes_the_reader_fail(text):
    document = read_document(text.encode())

    assert document.is_complete or document.problems


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        ((), "plan"),
        (("stages", "hear", "shape", 0), "stages.hear.shape[0]"),
        (("artifacts", "whisper.base"), 'artifacts["whisper.base"]'),
        (("a b", "\x1b"), '["a b"]["\\u001b"]'),
        (("x" * 100,), f'["{"x" * 40}..."]'),
    ],
)
def test_a_field_path_is_spelled_on_one_line(path, spelled):
    assert spell_path(path) == spelled
