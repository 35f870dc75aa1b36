from __future__ import annotations

from quorate.controller.configs.records import config_records, replay_config
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage


def test_records_set_and_remove_the_keys_that_they_are_made_for() -> None:
    delta = MetadataDelta(MetadataImage())
    for record in config_records((2, "a"), [("x", "1"), ("y", "2"), ("x", None)]):
        replay_config(delta, record)
    assert dict(delta.apply(LOG_BEGIN).configs.of((2, "a"))) == {"y": "2"}
