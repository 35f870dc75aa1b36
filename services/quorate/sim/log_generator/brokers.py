"""Brokers: starts, stops, crashes, silence, fencing, rebalancing.

Heartbeats without an effect are not sent: whenever the controller checks sessions, every live
process sends one, and nothing depends on heartbeats in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    Listener,
    RegisterBroker,
    RegisterBrokerReply,
    UnregisterBroker,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.records.errors import ErrorCode
from quorate.sim.log_generator.options import MINUTE_MS, SECOND_MS
from quorate.sim.log_generator.scenario import SESSION_MS, broker_ids
from quorate.sim.log_generator.stock_records import (
    each,
    expand,
    is_behind,
    is_led_by_another,
    partitions_where,
    prefer,
)
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.records.ids import TopicId
    from quorate.sim.log_generator.leader import LogLeader
    from quorate.sim.log_generator.options import WeekOptions
    from quorate.sim.log_generator.schedule import Schedule

RACKS: Final = ("eu-1a", "eu-1b", "eu-1c")
_PORT: Final = 9092
# The interval at which a process retries to register, until the previous session has expired.
_REGISTER_AGAIN_MS: Final = 3 * SECOND_MS
_HEARTBEAT_MS: Final = 2 * SECOND_MS
# leader.imbalance.check.interval.seconds, and the elections of one sweep.
REBALANCE_MS: Final = 5 * MINUTE_MS
_ELECTIONS_MAX: Final = 1000
_CATCH_UP_ROUNDS: Final = 4


@dataclass(slots=True)
class BrokerProcess:
    """One broker's process; `life` counts starts and ends, so that plans for an old one lapse.

    `is_heard` is True while it is alive and not isolated.
    """

    broker: int
    rack: str
    log_dir: bytes
    is_alive: bool = False
    is_heard: bool = False
    broker_epoch: int = -1
    life: int = 0


class WeekBrokers:
    """The processes of all registered brokers."""

    def __init__(self, options: WeekOptions, leading: LogLeader, schedule: Schedule) -> None:
        self._leading = leading
        self._schedule = schedule
        self._random_source = RandomSource(options.seed, "brokers")
        self._processes: dict[int, BrokerProcess] = {}
        self._heard_ms = 0
        self._is_imbalanced = False
        for broker in broker_ids(options):
            self.add(broker)

    def add(self, broker: int) -> None:
        """Add a machine with an empty disk."""
        rack = RACKS[broker % len(RACKS)]
        self._processes[broker] = BrokerProcess(broker, rack, self._random_source.uuid())

    @property
    def able(self) -> frozenset[int]:
        """Brokers that are neither fenced nor about to be."""
        active = self._leading.image.brokers.active
        return frozenset(b for b, p in self._processes.items() if p.is_heard and b in active)

    def epoch_of(self, broker: int) -> int:
        return self._processes[broker].broker_epoch

    # --- starting ---------------------------------------------------------------------------------

    def start(self, broker: int) -> None:
        """Start a process: it registers, loads the metadata and its logs, and is unfenced."""
        process = self._processes.get(broker)
        if process is None or process.is_alive:
            return
        process.is_alive = True
        process.life += 1
        self._register(process, self._random_source.uuid())

    def _register(self, process: BrokerProcess, incarnation_id: bytes) -> None:
        host = f"broker-{process.broker}.kafka.internal"
        request = RegisterBroker(
            broker_id=process.broker,
            incarnation_id=incarnation_id,
            cluster_id=self._leading.cluster_id,
            listeners=(Listener("PLAINTEXT", host, _PORT),),
            features=SUPPORTED_FEATURES,
            rack=process.rack,
            log_dirs=(process.log_dir,),
        )
        reply = self._leading.decide(request)
        assert isinstance(reply, RegisterBrokerReply), reply
        if reply.error is ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            again = self._for_life(process, lambda: self._register(process, incarnation_id))
            self._schedule.after(_REGISTER_AGAIN_MS, again)
            return
        assert reply.error is ErrorCode.NONE, reply.message
        process.broker_epoch = reply.broker_epoch
        process.is_heard = True
        self._unfence_after(process, self._random_source.between(800, 4000))

    def _unfence_after(self, process: BrokerProcess, wait_ms: int) -> None:
        self._schedule.after(wait_ms, self._for_life(process, lambda: self._unfence(process)))

    def _unfence(self, process: BrokerProcess) -> None:
        if not process.is_heard:
            return
        reply = self._beat(process)
        self.look_at_sessions()
        if reply.is_fenced:
            self._unfence_after(process, _HEARTBEAT_MS)
            return
        behind = partitions_where(self._leading.image, is_behind(process.broker))
        self._catch_up(process, behind, _CATCH_UP_ROUNDS)

    def _catch_up(
        self, process: BrokerProcess, behind: list[tuple[TopicId, int]], rounds: int
    ) -> None:
        """Let its replicas join the ISR again, in several rounds: some fetch more than others."""
        wait_ms = self._random_source.between(2 * SECOND_MS, 20 * SECOND_MS)
        count = -(-len(behind) // rounds)

        def catch_up() -> None:
            who = self.able & {process.broker}
            found = each(self._leading.image, behind[:count])
            self._leading.take([expand(*place, who) for place in found])
            self._is_imbalanced = True
            if rounds > 1:
                self._catch_up(process, behind[count:], rounds - 1)

        self._schedule.after(wait_ms, self._for_life(process, catch_up))

    def _for_life(self, process: BrokerProcess, act: Callable[[], None]) -> Callable[[], None]:
        life = process.life

        def act_if_same() -> None:
            if process.life == life and process.is_alive:
                act()

        return act_if_same

    # --- heartbeats -------------------------------------------------------------------------------

    def _beat(
        self, process: BrokerProcess, *, want_shut_down: bool = False
    ) -> BrokerHeartbeatReply:
        request = BrokerHeartbeat(
            broker_id=process.broker,
            broker_epoch=process.broker_epoch,
            current_metadata_offset=self._leading.replayed,
            want_shut_down=want_shut_down,
        )
        reply = self._leading.decide(request)
        assert isinstance(reply, BrokerHeartbeatReply), reply
        return reply

    def hear_all(self) -> None:
        """Send a heartbeat of every broker that is reachable and not fenced."""
        self._heard_ms = self._leading.now_ms
        fenced = self._leading.image.brokers.by_id
        for broker, process in self._processes.items():
            if process.is_heard and not fenced[broker].registration.fenced:
                self._beat(process)

    def look_at_sessions(self) -> None:
        """Fence silent brokers, and append the leader and ISR changes that are due."""
        if self._leading.now_ms - self._heard_ms >= _HEARTBEAT_MS:
            self.hear_all()
        self._leading.settle()

    # --- going ------------------------------------------------------------------------------------

    def stop(self, broker: int, back_after_ms: int | None) -> None:
        """Shut a broker down in a controlled way; with None it is not started again."""
        process = self._processes.get(broker)
        if process is None or not process.is_heard:
            return
        reply = self._beat(process, want_shut_down=True)
        self.look_at_sessions()
        while not (reply.should_shut_down or reply.error is not ErrorCode.NONE):
            self._leading.at(self._leading.now_ms + self._random_source.between(200, _HEARTBEAT_MS))
            self.hear_all()
            reply = self._beat(process, want_shut_down=True)
            self.look_at_sessions()
        self._end(process)
        if back_after_ms is not None:
            self._schedule.after(back_after_ms, lambda: self.start(broker))

    def crash(self, brokers: tuple[int, ...], down_ms: int) -> None:
        """Kill several brokers at the same time; they are fenced when their sessions expire."""
        for broker in brokers:
            process = self._processes.get(broker)
            if process is not None and process.is_alive:
                self._end(process)
                self._schedule.after(down_ms, lambda gone=broker: self.start(gone))  # type: ignore[misc]
        self._schedule.after(SESSION_MS, self.look_at_sessions)

    def silence(self, broker: int, silent_ms: int) -> None:
        """Isolate a broker from the controllers for a while; its process continues."""
        process = self._processes.get(broker)
        if process is None or not process.is_heard:
            return
        self.hear_all()
        process.is_heard = False
        if silent_ms >= SESSION_MS:
            self._schedule.after(SESSION_MS, self.look_at_sessions)

        def be_heard() -> None:
            process.is_heard = True
            self._unfence(process)

        self._schedule.after(silent_ms, self._for_life(process, be_heard))

    def take_out(self, broker: int) -> None:
        """Stop a broker permanently and unregister it."""
        self.stop(broker, None)
        process = self._processes.get(broker)
        if process is None or process.is_alive:
            return
        self._leading.decide(UnregisterBroker(broker))
        self.look_at_sessions()
        del self._processes[broker]

    def _end(self, process: BrokerProcess) -> None:
        process.is_alive = process.is_heard = False
        process.life += 1

    # --- leaders ----------------------------------------------------------------------------------

    def rebalance(self) -> None:
        """Elect preferred replicas that are in sync, as the controller does periodically."""
        if not self._is_imbalanced:
            return
        self._is_imbalanced = False
        image = self._leading.image
        able = self.able
        found = each(image, partitions_where(image, is_led_by_another))
        records = [record for place in found if (record := prefer(*place, able)) is not None]
        self._leading.take(records[:_ELECTIONS_MAX])
        self._is_imbalanced = len(records) > _ELECTIONS_MAX
