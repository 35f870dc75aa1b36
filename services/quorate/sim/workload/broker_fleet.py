"""Simulated brokers and topics: registration, heartbeats, silence, restarts.

Their requests go through the production controller into the log, so that sessions expire, leaders
move and partitions settle concurrently with all faults. A separate random stream determines the
actions of brokers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from quorate.controller.authorization.authorizer import Caller
from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    Listener,
    RegisterBroker,
    RegisterBrokerReply,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.topics.messages import CreateTopics, DeleteTopics, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset
from quorate.sim.engine.application import caller_of
from quorate.sim.engine.node_config import CLUSTER_ID
from quorate.sim.randomness import RandomSource
from quorate.sim.workload.random_requests import RandomRequests

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.api.handlers import ControllerApiError
    from quorate.controller.request_types import WriteReply, WriteRequest
    from quorate.sim.cluster import Cluster
    from quorate.sim.engine.node import SimulatedNode

BROKER: Final = "User:broker"
ADMIN: Final = Caller("User:admin")
# The number of heartbeats per session timeout.
BEATS: Final = 4
RACKS: Final = (None, "r1", "r2")


@dataclass(slots=True)
class SimulatedBroker:
    """One broker; `epoch` is that of its registration, None until it is registered."""

    broker_id: int
    incarnation: int = 1
    epoch: int | None = None
    is_silent: bool = False
    is_leaving: bool = False
    is_asking: bool = False

    def restart(self) -> None:
        """Start another process of the same broker."""
        self.incarnation += 1
        self.epoch, self.is_leaving = None, False


class BrokerFleet:
    """All brokers of one cluster, and the client that creates topics on them."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.brokers = [
            SimulatedBroker(1 + number) for number in range(cluster.options.fleet.brokers)
        ]
        self.is_over = False
        self._random_source = RandomSource(cluster.seed, "fleet")
        self._drawn = RandomRequests(self._random_source)
        self._topics = [f"t{n}" for n in range(cluster.options.fleet.topics)]

    def begin(self) -> None:
        options = self.cluster.options
        if not self.brokers:
            return
        for broker in self.brokers:
            self._beat_later(broker)
        self._repeat(options.fleet.silence_every_ms, self.fall_silent)
        self._repeat(options.fleet.topics_every_ms, self.change_topics)
        self._repeat(options.fleet.oddities_every_ms, self.send_edge_case_requests)

    def end(self) -> None:
        """Let some brokers stay silent permanently, and all others send heartbeats from now on."""
        self.is_over = True
        if self.brokers:
            share = self._random_source.random.random()
            for broker in self.brokers:
                broker.is_silent = self._random_source.chance(share)
            gone = [broker.broker_id for broker in self.brokers if broker.is_silent]
            self.cluster.log(f"brokers {gone} are heard no more")

    # --- what they do -----------------------------------------------------------------------------

    def fall_silent(self) -> None:
        """Let some brokers fall silent at the same time, for up to three session timeouts."""
        share = self._random_source.choice((0.1, 0.5, 1.0))
        going = [broker for broker in self.brokers if self._random_source.chance(share)]
        self.cluster.log(f"brokers {[broker.broker_id for broker in going]} fall silent")
        session_us = self.cluster.options.timeouts.session_timeout_ms * 1000
        for broker in going:
            broker.is_silent = True
            kind = self._random_source.choice(("pause", "restart", "leave"))
            if kind == "leave":
                broker.is_silent, broker.is_leaving = False, True
            delay_us = int(self._random_source.random.random() * 3 * session_us)
            self.cluster.schedule(delay_us, partial(self._return, broker))
            if kind == "restart":
                broker.restart()

    def _return(self, broker: SimulatedBroker) -> None:
        if not self.is_over:
            broker.is_silent = False

    def change_topics(self) -> None:
        """Create a missing topic, or delete an existing one."""
        node = self._somebody()
        if node is None or not self._topics:
            return
        name = self._random_source.choice(self._topics)
        request: WriteRequest
        if name in node.application.controller.image.topics.ids and self._random_source.chance(0.3):
            request = DeleteTopics((name,))
        else:
            size = self.cluster.options.fleet.partitions
            topic = NewTopic(
                name,
                partitions=self._random_source.between(1, size),
                replication_factor=self._random_source.between(1, min(3, len(self.brokers))),
            )
            request = CreateTopics((topic,))
        node.application.ask(request, ADMIN, _forget)

    def send_edge_case_requests(self) -> None:
        """Send requests that conflict with others, are late or invalid."""
        node = self._somebody()
        if node is not None:
            request = self._drawn.one(node.application.controller.image)
            node.application.ask(request, ADMIN, _forget)

    # --- heartbeats -------------------------------------------------------------------------------

    def _beat_later(self, broker: SimulatedBroker) -> None:
        beat_us = self.cluster.options.timeouts.session_timeout_ms * 1000 // BEATS
        delay_us = int(beat_us * (0.8 + 0.4 * self._random_source.random.random()))

        def beat() -> None:
            self._beat(broker)
            self._beat_later(broker)

        self.cluster.schedule(delay_us, beat)

    def _beat(self, broker: SimulatedBroker) -> None:
        if broker.is_silent or broker.is_asking:
            return
        node = self._somebody()
        if node is None:
            return
        epoch, incarnation = broker.epoch, broker.incarnation

        def told(answer: WriteReply | ControllerApiError | None) -> None:
            broker.is_asking = False
            if broker.incarnation == incarnation:
                self._told(broker, answer)

        broker.is_asking = True
        request = _registration(broker) if epoch is None else self._heartbeat(broker, epoch)
        caller = caller_of(BROKER, broker.broker_id, self.cluster.options)
        node.application.ask(request, caller, told)

    def _told(
        self, broker: SimulatedBroker, answer: WriteReply | ControllerApiError | None
    ) -> None:
        match answer:
            case RegisterBrokerReply(error=ErrorCode.NONE, broker_epoch=epoch):
                broker.epoch = epoch
            case BrokerHeartbeatReply(error=ErrorCode.NONE, should_shut_down=True):
                broker.restart()
            case BrokerHeartbeatReply(
                error=ErrorCode.STALE_BROKER_EPOCH | ErrorCode.BROKER_ID_NOT_REGISTERED
            ):
                broker.restart()

    def _heartbeat(self, broker: SimulatedBroker, epoch: int) -> BrokerHeartbeat:
        """A heartbeat of a broker that has fetched nearly all of the log, as an observer does."""
        return BrokerHeartbeat(
            broker_id=broker.broker_id,
            broker_epoch=epoch,
            current_metadata_offset=Offset(max(0, self.cluster.oracle.end - 1)),
            want_fence=False,
            want_shut_down=broker.is_leaving and not self.is_over,
        )

    # --- draws ------------------------------------------------------------------------------------

    def _somebody(self) -> SimulatedNode | None:
        """A node that believes it leads; in one of twenty cases any running node."""
        running = self.cluster.running()
        if not running:
            return None
        leaders = [n for n in running if n.progress is not None and n.progress.is_leader]
        return self._random_source.choice(
            leaders if leaders and self._random_source.chance(0.95) else running
        )

    def _repeat(self, every_ms: int, action: Callable[[], None]) -> None:
        if not every_ms:
            return

        def again() -> None:
            if not self.is_over:
                action()
                self._repeat(every_ms, action)

        self.cluster.schedule(int(self._random_source.random.random() * 2000 * every_ms), again)


def _registration(broker: SimulatedBroker) -> RegisterBroker:
    id_ = broker.broker_id
    return RegisterBroker(
        broker_id=id_,
        incarnation_id=bytes((3, id_, broker.incarnation % 256)).rjust(16, b"\x10"),
        cluster_id=CLUSTER_ID,
        listeners=(Listener("PLAINTEXT", f"broker-{id_}", 9092),),
        features=SUPPORTED_FEATURES,
        rack=RACKS[id_ % len(RACKS)],
        log_dirs=(bytes((2, id_)).rjust(16, b"\x10"),),
    )


def _forget(answer: WriteReply | ControllerApiError | None) -> None:
    """Ignore the reply: the client reads the metadata later."""
    del answer
