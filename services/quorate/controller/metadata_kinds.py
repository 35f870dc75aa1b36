"""All kinds of metadata, in Kafka's snapshot order.

Periodic tasks are also decided in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.kind import BROKERS
from quorate.controller.client_quotas.kind import CLIENT_QUOTAS
from quorate.controller.configs.kind import CONFIGS
from quorate.controller.features.kind import FEATURES
from quorate.controller.opaque.kind import (
    ACLS,
    CONTROLLERS,
    DELEGATION_TOKENS,
    PRODUCER_IDS,
    SCRAM_CREDENTIALS,
    UNKNOWN,
    ZK_MIGRATION,
)
from quorate.controller.replication.kind import REPLICATION
from quorate.controller.topics.kind import TOPICS

if TYPE_CHECKING:
    from quorate.controller.metadata_kind import MetadataKind

METADATA_KINDS: Final[tuple[MetadataKind, ...]] = (
    FEATURES,
    BROKERS,
    CONTROLLERS,
    TOPICS,
    REPLICATION,
    CONFIGS,
    CLIENT_QUOTAS,
    PRODUCER_IDS,
    ACLS,
    SCRAM_CREDENTIALS,
    DELEGATION_TOKENS,
    ZK_MIGRATION,
    UNKNOWN,
)
