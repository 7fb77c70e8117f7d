"""Credit: what a consumer still accepts."""

import pytest

from stagewire.credit import Credit, Due
from stagewire.limits import WINDOW_BYTES, WINDOW_ITEMS

pytestmark = pytest.mark.unit


def test_an_item_may_leave_while_an_item_and_a_byte_are_left():
    assert Credit(1, 1).is_open
    assert not Credit(0, 100).is_open
    assert not Credit(5, 0).is_open


def test_an_item_larger_than_the_window_passes_alone():
    credit = Credit(4, 100)
    credit.spend(1000)
    assert not credit.is_open
    credit.grant(1, 899)
    assert not credit.is_open
    credit.grant(0, 2)
    assert credit.is_open


def test_what_was_spent_and_granted_is_what_it_was():
    credit = Credit(4, 100)
    for size in (10, 0, 90):
        credit.spend(size)
    assert not credit.is_open
    credit.grant(3, 100)
    assert credit == Credit(4, 100)


def test_what_is_due_is_held_back_until_it_is_a_quarter_of_the_window():
    due = Due()
    given = [due.add(1, 10) for _ in range(WINDOW_ITEMS // 4)]
    assert given[:-1] == [None] * (WINDOW_ITEMS // 4 - 1)
    assert given[-1] == Due(WINDOW_ITEMS // 4, WINDOW_ITEMS // 4 * 10)
    assert due == Due()


def test_large_items_are_given_back_by_their_bytes():
    due = Due()
    assert due.add(1, WINDOW_BYTES // 4 - 1) is None
    assert due.add(0, 1) == Due(1, WINDOW_BYTES // 4)
