"""ListBrokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    ListBrokers,
    ListBrokersReply,
    ListedBroker,
    Listener,
)

if TYPE_CHECKING:
    from quorate.controller.authorization.authorizer import Rights
    from quorate.controller.brokers.image import Broker
    from quorate.controller.image import MetadataImage
    from quorate.controller.slices import Slices

SLICE_ITEMS: Final = 100


def list_brokers_in_slices(
    image: MetadataImage, _request: ListBrokers, _rights: Rights
) -> Slices[ListBrokersReply]:
    """All registered brokers, in order of their ids."""
    listed = []
    for _, broker in sorted(image.brokers.by_id.items()):
        listed.append(_listed_broker(broker))
        if len(listed) % SLICE_ITEMS == 0:
            yield
    return ListBrokersReply(image.position.end_offset, tuple(listed))


def _listed_broker(broker: Broker) -> ListedBroker:
    registration = broker.registration
    return ListedBroker(
        broker_id=registration.broker_id,
        broker_epoch=registration.broker_epoch,
        incarnation_id=registration.incarnation_id,
        listeners=tuple(
            Listener(point.name, point.host, point.port, point.security_protocol)
            for point in registration.end_points
        ),
        rack=registration.rack,
        is_fenced=registration.fenced,
        in_controlled_shutdown=registration.in_controlled_shutdown,
        log_dirs=registration.log_dirs,
    )
