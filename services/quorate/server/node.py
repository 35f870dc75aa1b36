"""One controller from recovery of its directory to shutdown: wiring, health and metrics."""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import quorate
from quorate.raft import api
from quorate.raft.core import RaftCore
from quorate.raft.describe_quorum import api_versions
from quorate.raft.identity.peer_identity import ReplicaIdentity
from quorate.raft.replication.batch_info import batch_infos
from quorate.records.ids import DirectoryId
from quorate.records.value_types import value_type
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer
from quorate.rpc.limits.shared_connections import Connections
from quorate.rpc.raft.servicer import FetchStreams, RaftServicer
from quorate.rpc.raft.transport import RaftTransport
from quorate.server.component_config import raft_config, storage_config
from quorate.server.disk.executor import DiskCallTracker, InFlightCall, ThreadDiskExecutor
from quorate.server.disk.file_watcher import FileWatch
from quorate.server.disk.free_space_monitor import FreeSpaceMonitor
from quorate.server.driver.observers import Observers, TraceEventLogger
from quorate.server.driver.raft_driver import ExitReason, RaftDriver
from quorate.server.host import Host
from quorate.server.listeners import ListenerCertificates, Listeners
from quorate.server.metrics.controller_gauges import driver_gauges
from quorate.server.metrics.definitions import CONTROLLER_METERS
from quorate.server.metrics.loop_idle_ratio import LoopIdleRatio
from quorate.server.metrics.raft_meters import RaftMeters
from quorate.server.no_leader_warning import LeaderSearch
from quorate.server.resource_limits import DiskSpace
from quorate.server.second_quorum_alarm import SecondQuorumAlarm
from quorate.server.state_machine import make_metadata_state_machine, read_bootstrap
from quorate.settings.transport import Transport
from quorate.storage.file_system import OsFileSystem
from quorate.storage.log_store import LogStore
from quorate.storage.random_ids import draw_uuid
from quorate.telemetry import tracing
from quorate.telemetry.metrics import CallbackCollector, MetricsServer, process_numbers

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from quorate.records.ids import Epoch, NodeId, OffsetAndEpoch
    from quorate.records.metadata import MetadataRecord
    from quorate.rpc.service import Service
    from quorate.server.advertised_host import AdvertisedHost
    from quorate.server.config import ControllerConfig
    from quorate.server.loop_watchdog import LoopWatchdog
    from quorate.server.state_machine import HostedStateMachine, StateMachineFactory
    from quorate.server.tracing.raft_spans import RaftSpans
    from quorate.storage.recovery.recovery import Recovered
    from quorate.telemetry.metrics import Value

log = logging.getLogger(__name__)
_TICK_S: Final = 1.0
_REMARKS_EVERY: Final = 60
# The largest signed 64-bit integer.
INCARNATION_MAX: Final = 2**63 - 1
_SPACE_EVERY: Final = 5
_STOP_GRACE_S: Final = 0.5


@value_type
class OpenedDirectory:
    """The result of recovery: the open store, and the records that `format` left in it."""

    store: LogStore
    recovered: Recovered
    bootstrap: tuple[MetadataRecord, ...]


@value_type
class Peers:
    """The transport to the other controllers, and the warnings about them."""

    client: RaftTransport
    search: LeaderSearch
    alarm: SecondQuorumAlarm


@value_type
class Looks:
    """The checks that run every few seconds: of the free space and of the files."""

    free_space_monitor: FreeSpaceMonitor
    files: FileWatch


@value_type
class Surroundings:
    """Parts of the process that outlive a node: one process may run several nodes in succession."""

    watch: LoopWatchdog | None = None
    advertised: AdvertisedHost | None = None


class Node:
    """One controller, from the recovery of its directory to the closing of its files."""

    def __init__(
        self,
        config: ControllerConfig,
        health: HealthServer,
        *,
        listener_certificates: ListenerCertificates | None = None,
        state_machine_factory: StateMachineFactory = make_metadata_state_machine,
        around: Surroundings | None = None,
    ) -> None:
        """Create a node; `listener_certificates` and `around` outlive a node that restarts.

        If `listener_certificates` is None, the files of the settings are read. Raises TlsError if
        they cannot be read.
        """
        self._around = around or Surroundings()
        self._config = config
        self._listener_certificates = listener_certificates or ListenerCertificates(
            config.listeners
        )
        self._state_machine_factory = state_machine_factory
        self._health = health
        self.ended = asyncio.Event()
        self.exit_reason: ExitReason | None = None
        self.message = ""
        self._listeners: Listeners | None = None
        self._housekeeping: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._health_state: dict[str, bool] = {}
        self._ticks = 0
        self._hangs = False
        self._loop_idle_ratio = LoopIdleRatio()
        self._meters = RaftMeters()

    def open(self) -> asyncio.Future[OpenedDirectory]:
        """Recover the directory in a thread, so that the loop still serves signals and probes.

        The caller passes the result to `serve`, or closes it. Raises StorageError, OSError.
        """
        directory = self._config.log.directory
        settings = replace(storage_config(self._config), new_directory_id=DirectoryId(draw_uuid()))

        def recover() -> OpenedDirectory:
            store, recovered = LogStore.open(OsFileSystem(), directory, settings)
            try:
                is_needed = not recovered.state.snapshots and not store.log.has_data
                return OpenedDirectory(
                    store, recovered, read_bootstrap(directory, is_needed=is_needed)
                )
            except BaseException:
                store.close()
                raise

        thread = ThreadDiskExecutor("recovery", DiskCallTracker())
        recovery = thread.run("recovery", recover)
        thread.close()
        return recovery

    async def start(self) -> None:
        """Recover, then serve."""
        await self.serve(await self.open())

    async def serve(self, opened_directory: OpenedDirectory) -> None:
        """Serve. Raises StorageError, OSError, and RuntimeError if a port is taken."""
        async with AsyncExitStack() as undo:
            # The process may start another node if this one cannot start.
            undo.push_async_callback(self._end_background)
            await self._serve(opened_directory, undo)
            undo.pop_all()
        self._housekeeping = asyncio.get_running_loop().create_task(self._keep_house())

    async def _serve(self, opened_directory: OpenedDirectory, undo: AsyncExitStack) -> None:
        config, store, recovered = self._config, opened_directory.store, opened_directory.recovered
        for finding in recovered.findings:
            log.warning(finding)
        meta = recovered.meta
        settings, number = raft_config(config, meta), 1 + secrets.randbelow(INCARNATION_MAX)
        core = RaftCore(settings, recovered.state, secrets.SystemRandom(), number)
        spans = make_spans(core)
        observers = make_observers(core, spans, self._meters)
        try:
            self.driver = driver = RaftDriver(core, store, self._ended, observers)
        except BaseException:
            store.close()
            raise
        undo.push_async_callback(driver.close)
        hosted = self._state_machine_factory(driver, config, meta, opened_directory.bootstrap)
        self._application = application = hosted.machine
        undo.push_async_callback(application.close)
        space = DiskSpace(config.log.directory, config.log.free_bytes_min)
        room = FreeSpaceMonitor(space, driver, application, lambda: self.exit_reason is not None)
        self._looks = Looks(room, FileWatch(driver, application))
        client = RaftTransport(
            own=ReplicaIdentity(settings.cluster_id, settings.key),
            on_response=lambda call, response: driver.deliver(api.ResponseReceived(call, response)),
            on_probe=lambda call, refused: driver.deliver(
                api.ProbeCompleted(call, refused=refused)
            ),
            parse_batches=batch_infos,
            request_timeout_ms=config.quorum.request_timeout_ms,
            tls=self._listener_certificates.of(config.peers),
            transport=config.transport,
        )
        undo.push_async_callback(client.close)
        self._peers = Peers(client, LeaderSearch(core, client.outcomes), SecondQuorumAlarm(core))
        # A port that is taken must be detected before the core does anything.
        self._listeners = listeners = self._make_listeners(core, driver, hosted)
        undo.push_async_callback(listeners.stop)
        listeners.bind()
        transport = client if spans is None else spans.carried_by(client)
        driver.start(transport, application)
        application.begin(_newest_snapshot(recovered))
        await listeners.start()
        self._spawn(self._listen_on(listeners, driver))

    def _make_listeners(
        self, core: RaftCore, driver: RaftDriver, hosted_state_machine: HostedStateMachine
    ) -> Listeners:
        who = api_versions(core.replica)
        connections = Connections()
        fetchers = FetchStreams(lambda key: key in core.replica.voters, connections.preferred)

        def services(listener: str) -> tuple[Service, ...]:
            raft = RaftServicer(
                driver,
                who,
                software_version=quorate.__version__,
                listener=listener,
                fetch_streams=fetchers,
            )
            return (raft, *hosted_state_machine.services(listener))

        def is_voter(node_id: NodeId) -> bool:
            sets = core.replica.commit_state.possible_voter_sets()
            return any(voters.by_id(node_id) is not None for voters in sets)

        return Listeners(self._config, self._listener_certificates, services, is_voter, connections)

    @staticmethod
    async def _listen_on(listeners: Listeners, driver: RaftDriver) -> None:
        if await listeners.wait_unexpected_stop():
            driver.stop_unreachable()

    def request_shutdown(self) -> None:
        """Transfer leadership, then stop; sets `ended` when that is done or timed out."""
        if self.exit_reason is None:
            log.info("shutting down: leadership is handed over first")
            self.driver.shut_down(self._config.shutdown_timeout_ms)

    def _ended(self, exit_reason: ExitReason, message: str) -> None:
        self.exit_reason, self.message = exit_reason, message
        if exit_reason is not ExitReason.STOPPED:
            log.error("the core has stopped: %s", message, extra={"ending": exit_reason.name})
        if self._listeners is not None:
            # Peers fail over as soon as a listener refuses them (rule `disk_fail_stop`), so after
            # a failure it closes immediately. An orderly stop leaves time to send the replies to
            # requests that have been committed.
            is_orderly = exit_reason in (ExitReason.STOPPED, ExitReason.LATE)
            self._spawn(self._listeners.stop(_STOP_GRACE_S if is_orderly else None))
            self._looks.files.ended()
        self._spawn(self._tell_health())
        self.ended.set()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def stop(self, limit_s: float | None = None) -> bool:
        """Close all parts in an order in which no request gets a wrong answer.

        Returns False if the disk did not return within the limit: then the process should end.
        """
        try:
            async with asyncio.timeout(limit_s):
                return await self._stop()
        except TimeoutError:
            pass
        log.error("could not stop in %s s: %s", limit_s, _words(self.driver.access.calls.oldest()))
        return False

    async def _stop(self) -> bool:
        if self._housekeeping is not None:
            self._housekeeping.cancel()
            await asyncio.wait([self._housekeeping])
        if self._listeners is not None:
            await self._listeners.stop(_STOP_GRACE_S)
        await self._looks.files.close()
        await self._application.close()
        await self._peers.client.close()
        await self.driver.close()
        await self._end_background()
        return True

    async def _end_background(self) -> None:
        if self._background:
            await asyncio.wait(self._background)

    # --- housekeeping -----------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        while True:
            try:
                await self._tell_health()
                if self.exit_reason is None:
                    self._tick()
                elif self.exit_reason is ExitReason.DISK_FAILED:
                    self._look_on()
            except Exception as error:
                # An error of one round must not prevent the next one.
                log.exception("housekeeping", extra={"repeats": ("housekeeping", type(error))})
            await asyncio.sleep(_TICK_S if STARTUP in self._health_state else 0.05)

    def _tick(self) -> None:
        self._loop_idle_ratio.sample()
        self._application.tick()
        self._tell_hanging()
        for warning in self._listener_certificates.expiry_warnings():
            log.warning(warning)
        missing = self._peers.search.look()
        if missing is not None:
            log.warning(missing)
        second_quorum = self._peers.alarm.look()
        if second_quorum is not None:
            log.error(second_quorum)
        self._look_on()
        if self._ticks % _REMARKS_EVERY == 0:
            for remark in self.driver.core.status_warnings():
                log.warning(remark)
            slow = self.driver.access.flushing.times.warning(self._config.quorum.fetch_timeout_ms)
            if slow is not None:
                log.warning(slow)

    def _look_on(self) -> None:
        """Check the files and the free space every few ticks.

        This continues after a full disk has stopped the core: operators who free space see the
        effect in the metrics.
        """
        if self._ticks % _SPACE_EVERY == 0:
            self._looks.free_space_monitor.check()
            self._looks.files.look()
        self._ticks += 1

    @property
    def _late(self) -> InFlightCall | None:
        """The disk call that has exceeded its deadline, or None (rule `disk_call_deadline`)."""
        return self.driver.access.calls.overdue(self.driver.deadline_ms)

    def _tell_hanging(self) -> None:
        """Log once that the disk is stalled, and once that it has recovered."""
        late = self._late
        if (late is not None) is self._hangs:
            return
        self._hangs = late is not None
        if self._hangs:
            log.error("the disk hangs, this controller is not ready: %s", _words(late))
        else:
            log.warning("the disk answers again")

    async def _tell_health(self) -> None:
        """Report the node to the health service: live, started, ready.

        Started means that the state machine is loaded and no disk call is overdue. Ready means, in
        addition, that the replica leads or is in contact with a leader, and that its advertised
        host resolves: without a leader a controller cannot serve clients.
        """
        is_started = self.exit_reason is None and self._application.is_loaded and self._late is None
        advertised = self._around.advertised
        can_be_called = advertised is None or advertised.is_resolved
        is_ready = is_started and can_be_called and self.driver.core.has_live_leader
        await self._set_health(LIVENESS, serving=True)
        await self._set_health(READINESS, serving=is_ready)
        if is_started:
            await self._set_health(STARTUP, serving=True)

    async def _set_health(self, service: str, *, serving: bool) -> None:
        if self._health_state.get(service) is not serving:
            self._health_state[service] = serving
            await self._health.set(service, serving=serving)

    def metrics(self) -> dict[str, Value]:
        """Values for a scrape; read from another thread, each of them atomically."""
        driver, watch = self.driver, self._around.watch
        replica = driver.core.replica
        has_static_voters = bool(self._config.quorum.voters.voters)
        values: dict[str, Value] = {
            **driver_gauges(driver, self._meters),
            **self._application.metrics(),
            **process_numbers(),
            "poll_idle_ratio": self._loop_idle_ratio.ratio,
            "event_loop_standing_seconds": 0.0 if watch is None else watch.stalled_s,
            "event_loop_stalls_total": 0 if watch is None else watch.stalls,
            "disk_free_bytes": self._looks.free_space_monitor.space.free_bytes,
            "ignored_static_voters": float(has_static_voters and replica.log.kraft_version > 0),
            "is_ready": float(self._health_state.get(READINESS, False)),
        }
        if self._config.transport is Transport.H2 and self._listeners is not None:
            stats = self._listeners.connections.stats
            values["refused_connections_total"] = stats.refused_connections
            values["failed_tls_handshakes_total"] = stats.failed_handshakes
        expires_s = self._listener_certificates.expires_s
        if expires_s is not None:
            values["certificate_expiry_timestamp_seconds"] = expires_s
        return values

    def metrics_server(self) -> MetricsServer:
        """Create a server for the metrics."""
        labels = {"node_id": str(self._config.node_id)}
        return MetricsServer(CallbackCollector(self.metrics, labels, CONTROLLER_METERS).registry())


def _words(call: InFlightCall | None) -> str:
    if call is None:
        return "no call to the disk is under way"
    return f"{call.what} has not returned for {call.age_s:.1f} s"


def make_spans(core: RaftCore) -> RaftSpans | None:
    """Create the span observer of the core; None if tracing is off."""
    active = tracing.active()
    if active is None:
        return None
    from quorate.server.tracing.raft_spans import RaftSpans

    return RaftSpans(active, core.replica, Host().monotonic_ms)


def make_observers(core: RaftCore, spans: RaftSpans | None, meters: RaftMeters) -> Observers:
    """Create the driver's observers: spans first, because log lines contain their ids."""

    def epoch() -> Epoch:
        return core.replica.epoch

    if spans is None:
        return Observers(TraceEventLogger(epoch), meters)
    return Observers(spans, TraceEventLogger(epoch, spans.within_step), meters)


def _newest_snapshot(recovered: Recovered) -> OffsetAndEpoch | None:
    snapshots = recovered.state.snapshots
    return snapshots[-1].snapshot_id if snapshots else None
