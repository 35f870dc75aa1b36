"""Image part: client quotas."""

from __future__ import annotations

from typing import TypeAlias

from quorate.controller.keyed_values import KeyedValues, KeyedValuesDelta

# For each of its types, sorted: the type, if it has a name, and the name. An entity without a name
# is the default for all that have no quota of their own, and comes first in sorted order.
EntityKey: TypeAlias = tuple[tuple[str, bool, str], ...]
ClientQuotas: TypeAlias = KeyedValues[EntityKey, float]
ClientQuotasDelta: TypeAlias = KeyedValuesDelta[EntityKey, float]
