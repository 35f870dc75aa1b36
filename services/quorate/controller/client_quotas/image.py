"""Quotas of all entities: a part of the image."""

from __future__ import annotations

from typing import TypeAlias

from quorate.controller.keyed_values import NamedValues, NamedValuesDelta

# For each of its types, in their order: whether it has a name of that type, and which. One without
# stands for all that have no quota of their own, and comes first where entities are in order.
EntityKey: TypeAlias = tuple[tuple[str, bool, str], ...]
ClientQuotas: TypeAlias = NamedValues[EntityKey, float]
ClientQuotasDelta: TypeAlias = NamedValuesDelta[EntityKey, float]
