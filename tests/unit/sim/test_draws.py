from __future__ import annotations

from quorate.sim.draws import Draws, StableTopicId, StableTopicName


def test_a_topic_id_is_found_by_its_bytes_and_hashes_alike_everywhere() -> None:
    one = StableTopicId(bytes(range(16)))
    assert one == StableTopicId(bytes(range(16))) == bytes(range(16))
    assert hash(one) == 0x00010203040506


def test_a_topic_name_is_found_by_its_letters_and_hashes_alike_everywhere() -> None:
    one = StableTopicName("orders")
    assert one == StableTopicName("orders") == "orders"
    assert hash(one) == 0xE52FFDEE


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
