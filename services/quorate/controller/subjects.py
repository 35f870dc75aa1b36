"""All subjects of the metadata, in the order in which a snapshot tells of them, which is Kafka's.

What is due without a request is decided in this order, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.subject import BROKERS
from quorate.controller.client_quotas.subject import CLIENT_QUOTAS
from quorate.controller.configs.subject import CONFIGS
from quorate.controller.features.subject import FEATURES
from quorate.controller.opaque.subject import (
    ACLS,
    CONTROLLERS,
    DELEGATION_TOKENS,
    PRODUCER_IDS,
    SCRAM_CREDENTIALS,
    UNKNOWN,
    ZK_MIGRATION,
)
from quorate.controller.replication.subject import REPLICATION
from quorate.controller.topics.subject import TOPICS

if TYPE_CHECKING:
    from quorate.controller.subject import Subject

SUBJECTS: Final[tuple[Subject, ...]] = (
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
