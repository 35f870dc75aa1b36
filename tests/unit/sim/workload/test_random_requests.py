from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.controller.brokers.messages import BrokerHeartbeat
from quorate.controller.image import MetadataImage
from quorate.sim.randomness import RandomSource
from quorate.sim.workload.random_requests import RandomRequests

if TYPE_CHECKING:
    from quorate.controller.request_types import WriteRequest


def drawn(seed: int) -> list[WriteRequest]:
    requests = RandomRequests(RandomSource(seed, "requests"))
    return [requests.one(MetadataImage()) for _ in range(200)]


def test_one_seed_draws_the_same_requests_again() -> None:
    assert drawn(1) == drawn(1) != drawn(2)


def test_nobody_is_heard_before_there_are_brokers() -> None:
    kinds = {type(request) for request in drawn(1)}
    assert len(kinds) == 5
    assert BrokerHeartbeat not in kinds
