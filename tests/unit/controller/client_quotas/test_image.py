from __future__ import annotations

from immutables import Map

from quorate.controller.client_quotas.image import ClientQuotas
from quorate.controller.client_quotas.quota_entities import key_of
from quorate.controller.image import LOG_BEGIN, MetadataDelta, MetadataImage
from tests.unit.controller.client_quotas.conftest import ALL_USERS, USER


def test_an_entity_has_its_own_quotas_in_the_image() -> None:
    delta = MetadataDelta(MetadataImage())
    for value, entity in enumerate((ALL_USERS, USER), 1):
        delta.client_quotas.set(key_of(entity), "producer_byte_rate", float(value))
    image = delta.apply(LOG_BEGIN)
    assert image.client_quotas == ClientQuotas(
        Map(
            {
                (("user", False, ""),): Map(producer_byte_rate=1.0),
                (("user", True, "alice"),): Map(producer_byte_rate=2.0),
            }
        )
    )
    assert image.replaced == 2
