from __future__ import annotations

from immutables import Map

from quorate.controller.configs.image import Configs


def test_nothing_is_set_where_nothing_was() -> None:
    assert Configs().of((2, "a")) == Map()


def test_a_resource_without_any_config_left_is_gone() -> None:
    key = (2, "a")
    delta = Configs().mutate()
    delta.set(key, "x", None)
    delta.set(key, "x", "1")
    delta.set(key, "y", "2")
    delta.set(key, "x", None)
    configs = delta.finish()
    assert configs == Configs(Map([(key, Map(y="2"))]))
    delta = configs.mutate()
    delta.set(key, "y", None)
    assert delta.finish() == Configs()


def test_what_a_resource_had_goes_with_it_and_may_be_nothing() -> None:
    delta = Configs(Map([((2, "a"), Map(y="2"))])).mutate()
    delta.remove((2, "a"))
    delta.remove((2, "a"))
    assert delta.finish() == Configs()
