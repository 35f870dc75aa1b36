"""Converts client-quota records to state and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.client_quotas.messages import EntityPart
from quorate.controller.client_quotas.quota_entities import entity_of, key_of
from quorate.controller.slices import sorted_in_slices
from quorate.records.metadata import ClientQuotaRecord, EntityData

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from quorate.controller.client_quotas.image import EntityKey
    from quorate.controller.image import MetadataDelta, MetadataImage


def quota_records(
    key: EntityKey, quotas: Iterable[tuple[str, float | None]]
) -> list[ClientQuotaRecord]:
    """A record for each quota of an entity to set, or to remove if the value is None."""
    entity = tuple(
        EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
        for part in entity_of(key)
    )
    return [
        ClientQuotaRecord(
            entity=entity, key=name, value=0.0 if quota is None else quota, remove=quota is None
        )
        for name, quota in quotas
    ]


def replay_quota(delta: MetadataDelta, record: ClientQuotaRecord) -> None:
    """Set a quota, or remove it if it exists: both are the same record type."""
    key = key_of(EntityPart(part.entity_type, part.entity_name) for part in record.entity)
    delta.client_quotas.set(key, record.key, None if record.remove else record.value)


def all_quota_records(image: MetadataImage) -> Iterator[ClientQuotaRecord | None]:
    """The quotas of all entities; None for a pause without a record."""
    for key in sorted_in_slices(image.client_quotas.by_owner):
        if key is None:
            yield None
        else:
            yield from quota_records(key, sorted(image.client_quotas.of(key).items()))
