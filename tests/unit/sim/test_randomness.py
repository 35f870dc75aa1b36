"""Random choices, with a stream for each purpose."""

from __future__ import annotations

from quorate.sim.randomness import RandomSource, RandomStreams


def draws(random_streams: RandomStreams, *purpose: str | int) -> list[float]:
    return [random_streams.stream(*purpose).random() for _ in range(5)]


def test_what_befalls_one_leaves_the_chances_of_all_others_as_they_were() -> None:
    fates, undisturbed = RandomStreams(1), RandomStreams(1)
    draws(fates, "way", 1, 2)
    assert draws(fates, "way", 2, 1) == draws(undisturbed, "way", 2, 1)
    assert draws(fates, "way", 1, 2) != draws(undisturbed, "way", 1, 2)


def test_each_seed_has_other_chances() -> None:
    assert draws(RandomStreams(1), "disk", 1) != draws(RandomStreams(2), "disk", 1)
    assert draws(RandomStreams(1), "disk", 1) != draws(RandomStreams(1), "disk", 2)


def test_what_never_happens_draws_nothing() -> None:
    fates = RandomStreams(1)
    assert not fates.chance(0.0, "loss", 1, 2)
    assert draws(fates, "loss", 1, 2) == draws(RandomStreams(1), "loss", 1, 2)
    assert all(fates.chance(1.0, "loss", 1, 2) for _ in range(10))


def test_each_disk_has_an_id_of_its_own() -> None:
    fates = RandomStreams(1)
    ids = [fates.directory_id(node_id) for node_id in (1, 1, 2)]
    assert len({*ids}) == 3
    assert ids[0] == RandomStreams(1).directory_id(1)


def test_a_purpose_has_numbers_of_its_own() -> None:
    assert RandomSource(1, "a").uuid() == RandomSource(1, "a").uuid()
    assert RandomSource(1, "a").uuid() != RandomSource(1, "b").uuid()
    assert RandomSource(1, "a").uuid() != RandomSource(2, "a").uuid()


def test_numbers_lie_within_their_bounds_and_names_come_as_often_as_they_weigh() -> None:
    draws = RandomSource(1, "anything")
    assert {draws.between(2, 4) for _ in range(100)} == {2, 3, 4}
    assert {draws.choice("abc") for _ in range(100)} == set("abc")
    names = [draws.weighted((("a", 0.9), ("b", 0.1))) for _ in range(1000)]
    assert 800 < names.count("a") < 980
