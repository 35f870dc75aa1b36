from __future__ import annotations

from quorate.controller.configs.image import Configs
from quorate.controller.configs.records import replay_config
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from quorate.records.metadata import ConfigRecord


def test_an_empty_image_has_none() -> None:
    assert MetadataImage().configs == Configs()


def test_a_resource_is_its_type_and_its_name() -> None:
    delta = MetadataDelta(MetadataImage())
    for number, name in ((2, "1"), (4, "1")):
        record = ConfigRecord(resource_type=number, resource_name=name, name="x", value=str(number))
        replay_config(delta, record)
    configs = delta.apply(LOG_BEGIN).configs
    assert {key: dict(values) for key, values in configs.by_owner.items()} == {
        (2, "1"): {"x": "2"},
        (4, "1"): {"x": "4"},
    }
