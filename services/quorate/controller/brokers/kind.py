"""Brokers as a metadata kind."""

from __future__ import annotations

from typing import Final

from quorate.controller.brokers.heartbeats import SILENCE, decide_heartbeat, hear
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
from quorate.controller.metadata_kind import Subject, Write
from quorate.records.metadata import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

BROKERS: Final = Subject(
    writes=(
        Write(request=RegisterBroker, decide=decide_register),
        Write(request=BrokerHeartbeat, decide=decide_heartbeat, arrived=hear),
        Write(request=UnregisterBroker, decide=decide_unregister),
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
    large=lambda image: image.brokers.large_parts(),
    timed=SILENCE,
)
