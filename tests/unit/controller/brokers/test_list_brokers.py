from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.brokers.messages import (
    ListBrokers,
    ListBrokersReply,
    ListedBroker,
    Listener,
)
from tests.unit.controller.conftest import answer

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster


def test_brokers_are_listed_by_id_with_their_standing(cluster: Cluster) -> None:
    cluster.ask(cluster.heartbeat(2, want_fence=True))
    reply = answer(cluster.image, ListBrokers())
    assert isinstance(reply, ListBrokersReply)
    assert [(broker.broker_id, broker.is_fenced) for broker in reply.brokers] == [
        (1, False),
        (2, True),
        (3, False),
    ]
    registration = cluster.image.brokers.by_id[1].registration
    assert reply.brokers[0] == ListedBroker(
        broker_id=1,
        broker_epoch=registration.broker_epoch,
        incarnation_id=registration.incarnation_id,
        listeners=(Listener("PLAINTEXT", "127.0.0.1", 9001),),
        rack=None,
        is_fenced=False,
        in_controlled_shutdown=False,
        log_dirs=registration.log_dirs,
    )
