"""Brokers as a metadata kind."""

from __future__ import annotations

from typing import Final

from quorate.controller.brokers.heartbeats import SESSION_EXPIRY_TASK, decide_heartbeat, hear
from quorate.controller.brokers.list_brokers import list_brokers_in_slices
from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    ListBrokers,
    RegisterBroker,
    UnregisterBroker,
)
from quorate.controller.brokers.records import (
    broker_records,
    replay_fence,
    replay_register,
    replay_registration_change,
    replay_unfence,
    replay_unregister,
)
from quorate.controller.brokers.registration import decide_register, decide_unregister
from quorate.controller.metadata_kind import MetadataKind, WriteOperation
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

BROKERS: Final = MetadataKind(
    writes=(
        WriteOperation(request=RegisterBroker, decide=decide_register),
        WriteOperation(request=BrokerHeartbeat, decide=decide_heartbeat, arrived=hear),
        WriteOperation(request=UnregisterBroker, decide=decide_unregister),
    ),
    reads={ListBrokers: list_brokers_in_slices},
    replay={
        BrokerRegistrationChangeRecord: replay_registration_change,
        FenceBrokerRecord: replay_fence,
        UnfenceBrokerRecord: replay_unfence,
        UnregisterBrokerRecord: replay_unregister,
    },
    replay_at={RegisterBrokerRecord: replay_register},
    snapshot=broker_records,
    large_parts=lambda image: image.brokers.large_parts(),
    periodic_task=SESSION_EXPIRY_TASK,
)
