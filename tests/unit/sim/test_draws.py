from __future__ import annotations

from quorate.sim.draws import Draws


def test_a_purpose_has_numbers_of_its_own() -> None:
    assert Draws(1, "a").uuid() == Draws(1, "a").uuid()
    assert Draws(1, "a").uuid() != Draws(1, "b").uuid()
    assert Draws(1, "a").uuid() != Draws(2, "a").uuid()


def test_numbers_lie_within_their_bounds_and_names_come_as_often_as_they_weigh() -> None:
    draws = Draws(1, "anything")
    assert {draws.between(2, 4) for _ in range(100)} == {2, 3, 4}
    assert {draws.one("abc") for _ in range(100)} == set("abc")
    names = [draws.weighted((("a", 0.9), ("b", 0.1))) for _ in range(1000)]
    assert 800 < names.count("a") < 980
