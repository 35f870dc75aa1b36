from __future__ import annotations

from dataclasses import fields

from immutables import Map

from quorate.controller.configs.image import Configs
from quorate.controller.image import LOG_BEGIN, LogPosition, MetadataDelta, MetadataImage
from quorate.controller.opaque.image import Opaque
from quorate.records.ids import Epoch, Offset
from quorate.records.metadata import UnknownRecord

THERE = LogPosition(Offset(9), Epoch(2), 5)


def test_an_empty_image_is_at_the_begin_of_the_log() -> None:
    image = MetadataImage()
    assert image.position == LOG_BEGIN
    assert image.topics.by_name_or_none("a") is None
    assert image.configs.of((2, "a")) == Map()
    assert image == MetadataImage()


def test_an_image_moves_along_a_log_where_nothing_changes() -> None:
    moved = MetadataImage(features=Map(a=1)).at(THERE)
    assert moved == MetadataImage(position=THERE, features=Map(a=1))


def test_without_changes_the_image_is_the_same_further_on() -> None:
    image = MetadataImage(features=Map(a=1), opaque=Opaque(unknown=(UnknownRecord(99, 0, b""),)))
    applied = MetadataDelta(image).apply(THERE)
    assert applied == image.at(THERE)
    for part in fields(MetadataImage):
        if part.name != "position":
            assert getattr(applied, part.name) is getattr(image, part.name)


def test_a_part_is_changed_by_itself() -> None:
    image = MetadataImage(features=Map(a=1))
    delta = MetadataDelta(image)
    delta.features = delta.features.set("b", 2)
    delta.configs.set((2, "a"), "x", "1")
    applied = delta.apply(THERE)
    assert image == MetadataImage(features=Map(a=1))
    assert applied == MetadataImage(
        THERE, features=Map(a=1, b=2), configs=Configs(Map([((2, "a"), Map(x="1"))]))
    )
    assert applied.topics is image.topics


def test_a_delta_shows_what_was_changed_so_far() -> None:
    delta = MetadataDelta(MetadataImage(features=Map(a=1)))
    assert delta.features == Map(a=1)
    delta.configs.set((2, "a"), "x", "1")
    assert delta.configs.of((2, "a")) == Map(x="1")
