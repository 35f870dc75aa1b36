"""Any seven days in a row have every test once, and no day has many more than another."""

from __future__ import annotations

from datetime import date, timedelta

from tests.e2e.week import DAYS, dealt


def test_a_week_has_every_test_once() -> None:
    names = {f"test_{i}" for i in range(23)}
    for start in (date(2026, 11, 28), date(2027, 12, 30)):
        days = [dealt(names, start + timedelta(days=i)) for i in range(DAYS)]
        assert set().union(*days) == names
        assert sum(map(len, days)) == len(names)
        assert {len(day) for day in days} == {3, 4}


def test_the_order_of_names_changes_nothing() -> None:
    day = date(2026, 11, 28)
    assert dealt(["b", "a", "c"], day) == dealt(["c", "b", "a"], day)
    assert dealt([], day) == set()
