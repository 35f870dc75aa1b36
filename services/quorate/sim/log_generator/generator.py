"""Generates one log from the plan and routine activity, appended by the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from quorate.records.value_types import value_type
from quorate.sim.log_generator import scenario
from quorate.sim.log_generator.background_load import Background
from quorate.sim.log_generator.brokers import REBALANCE_MS, WeekBrokers
from quorate.sim.log_generator.leader import LogLeader
from quorate.sim.log_generator.options import HOUR_MS, MINUTE_MS, SECOND_MS, START_MS
from quorate.sim.log_generator.scenario import SESSION_MS, broker_ids, plan
from quorate.sim.log_generator.schedule import Schedule
from quorate.sim.log_generator.security import Security
from quorate.sim.log_generator.topics import WeekTopics
from quorate.sim.log_generator.unsynced_files import UnsyncedFileSystem, sync_tree
from quorate.sim.randomness import RandomSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.sim.log_generator.options import WeekOptions
    from quorate.sim.log_generator.scenario import Incident

    OnProgress = Callable[[int, int], None]

# All brokers start within this time, and topics are created later.
_START_MS: Final = MINUTE_MS
_TOPICS_AFTER_MS: Final = 3 * MINUTE_MS
_DISK_BACK_MS: Final = 20 * MINUTE_MS
_FILL_SHARE: Final = 0.01
_LAST_DIES_MS: Final = 30 * MINUTE_MS


@value_type
class Generated:
    """The result: the number of records of all kinds, and the last epoch."""

    record_count: int
    epoch: int


def generate(root: str, options: WeekOptions, progress: OnProgress) -> Generated:
    """Write the directories below `root`, durable on return.

    `progress` is called once per simulated hour with the number of records and the elapsed part of
    the week in ms. Raises OSError if the disk fails or is full.
    """
    week = _Week(root, options, progress)
    week.run()
    sync_tree(root)
    return Generated(week.leading.record_count, week.leading.epoch)


class _Week:
    def __init__(self, root: str, options: WeekOptions, progress: OnProgress) -> None:
        self.leading = leading = LogLeader(options, UnsyncedFileSystem(), root)
        self._options = options
        self._progress = progress
        self._schedule = agenda = Schedule(lambda: leading.now_ms)
        self._brokers = WeekBrokers(options, leading, agenda)
        self._topics = WeekTopics(options, leading, self._brokers, agenda)
        self._security = Security(options, leading, self._brokers)
        self._background = Background(options, leading, agenda, self._topics, self._security)

    def run(self) -> None:
        """Run all activity in the order of time."""
        self._set_up()
        for planned in plan(self._options):
            self._schedule.at(
                START_MS + planned.at_ms,
                lambda incident=planned.incident: self._happen(incident),  # type: ignore[misc]
            )
        end_ms = START_MS + self._options.duration_ms
        self._schedule.at(end_ms - _LAST_DIES_MS, self._lose_last)
        while (due := self._schedule.next_before(end_ms)) is not None:
            at_ms, act = due
            self.leading.at(at_ms)
            act()
        self.leading.close()

    def _set_up(self) -> None:
        draws = RandomSource(self._options.seed, "set-up")
        leading = self.leading
        leading.elect(is_orderly=True, gap_ms=SECOND_MS, epochs_lost=0)
        leading.register_controllers(*(voter.key.node_id for voter in leading.voters))
        for broker in broker_ids(self._options):
            self._schedule.after(
                draws.between(SECOND_MS, _START_MS),
                lambda starting=broker: self._brokers.start(starting),  # type: ignore[misc]
            )
        count = self._options.topic_count
        self._schedule.after(_TOPICS_AFTER_MS, lambda: self._topics.create(count))
        self._schedule.after(scenario.SETUP_MS // 2, self._security.grant)
        self._schedule.after(scenario.SETUP_MS // 2, self._every_minute)
        self._schedule.after(scenario.SETUP_MS // 2, self._every_five_minutes)
        self._schedule.after(HOUR_MS, self._every_hour)

    def _every_minute(self) -> None:
        self._schedule.after(MINUTE_MS, self._every_minute)
        self._background.minute()

    def _every_five_minutes(self) -> None:
        self._schedule.after(REBALANCE_MS, self._every_five_minutes)
        self._brokers.rebalance()

    def _every_hour(self) -> None:
        self._schedule.after(HOUR_MS, self._every_hour)
        self._progress(self.leading.record_count, self.leading.now_ms - START_MS)

    def _lose_last(self) -> None:
        self.leading.lose_last()
        self._schedule.after(SESSION_MS, self._brokers.look_at_sessions)
        # In a quiet time, too, the directory of the lost leader then lacks some records.
        self._schedule.after(_LAST_DIES_MS // 2, self._security.grant)

    def _happen(self, incident: Incident) -> None:
        match incident:
            case scenario.Restart(broker, down_ms):
                self._brokers.stop(broker, down_ms)
            case scenario.Crash(brokers, down_ms):
                self._brokers.crash(brokers, down_ms)
            case scenario.BrokerIsolated(broker, silent_ms):
                self._brokers.silence(broker, silent_ms)
            case scenario.PartitionsMoved(topics):
                self._topics.move(topics)
            case scenario.BrokerDrained(broker, stop_after_ms):
                self._topics.drain(broker)
                self._schedule.after(stop_after_ms, lambda: self._brokers.take_out(broker))
            case scenario.BrokerAdded(broker):
                self._brokers.add(broker)
                self._brokers.start(broker)
                self._schedule.after(5 * MINUTE_MS, lambda: self._topics.fill(broker, _FILL_SHARE))
            case scenario.AclsRevoked():
                self._security.take_back()
            case _:
                self._happen_to_controllers(incident)

    def _happen_to_controllers(
        self,
        incident: scenario.MetadataVersionRaised
        | scenario.Election
        | scenario.VoterAdded
        | scenario.VoterRemoved
        | scenario.DiskReplaced
        | scenario.VoterMoved,
    ) -> None:
        leading = self.leading
        match incident:
            case scenario.MetadataVersionRaised():
                leading.raise_metadata_version()
            case scenario.Election(is_orderly, gap_ms, epochs_lost):
                old = leading.leader
                leading.elect(is_orderly=is_orderly, gap_ms=gap_ms, epochs_lost=epochs_lost)
                if old is not None:
                    # Its process has restarted, and registers.
                    wait_ms = 20 * SECOND_MS
                    self._schedule.after(wait_ms, lambda: leading.register_controllers(old.node_id))
            case scenario.VoterAdded(node):
                leading.join(node)
            case scenario.VoterRemoved(node):
                leading.leave(node)
            case scenario.DiskReplaced(node):
                leading.leave(node)
                self._schedule.after(_DISK_BACK_MS, lambda: leading.join(node))
            case scenario.VoterMoved(node):
                leading.move(node)
            case _:
                assert_never(incident)
        # A new leader grants every broker a full session, also those that have just crashed.
        self._schedule.after(SESSION_MS, self._brokers.look_at_sessions)
