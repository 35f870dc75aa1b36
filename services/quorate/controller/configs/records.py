"""Converts config records to state and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.slices import sorted_in_slices
from quorate.records.metadata import ConfigRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.configs.image import ConfigKey
    from quorate.controller.image import MetadataDelta, MetadataImage
    from quorate.records.metadata import MetadataRecord


def config_records(key: ConfigKey, entries: Iterable[tuple[str, str | None]]) -> list[ConfigRecord]:
    """A record for each key to set, or to remove if the value is None."""
    resource_type, resource_name = key
    return [
        ConfigRecord(
            resource_type=resource_type, resource_name=resource_name, name=name, value=value
        )
        for name, value in entries
    ]


def replay_config(delta: MetadataDelta, record: ConfigRecord) -> None:
    """Set one key of a resource, or remove it if the record has no value."""
    key = (record.resource_type, record.resource_name)
    delta.configs.set(key, record.name, record.value)


def all_config_records(image: MetadataImage) -> Iterator[MetadataRecord | None]:
    """The configs of all resources; None for a pause without a record."""
    for key in sorted_in_slices(image.configs.by_owner):
        if key is None:
            yield None
        else:
            yield from config_records(key, sorted(image.configs.of(key).items()))
