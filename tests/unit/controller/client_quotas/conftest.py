"""Entities, and requests about their quotas."""

from __future__ import annotations

from typing import Final

from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)

USER: Final = (EntityPart("user", "alice"),)
ALL_USERS: Final = (EntityPart("user"),)
CLIENT: Final = (EntityPart("client-id", "c"),)
BOTH: Final = (EntityPart("client-id", "c"), EntityPart("user", "alice"))
ADDRESS: Final = (EntityPart("ip", "10.0.0.1"),)


def alter(entity: tuple[EntityPart, ...], *ops: QuotaOp) -> AlterClientQuotas:
    return AlterClientQuotas((QuotaAlteration(entity, ops),))


def put(key: str = "producer_byte_rate", value: float = 1024.0) -> QuotaOp:
    return QuotaOp(key, value)


def drop(key: str = "producer_byte_rate") -> QuotaOp:
    return QuotaOp(key, remove=True)
