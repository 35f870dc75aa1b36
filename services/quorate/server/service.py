"""Entry point of the controller process: configuration, signals, restart after damage.

Exit status 0 after a graceful stop; 1 when the process cannot start, cannot continue, or could not
stop in time. A stop may come at any moment; a second one changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import uvloop

from quorate.process.interruption import unless_stopped
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.records.ids import format_uuid
from quorate.rpc.health import HealthServer
from quorate.rpc.listener import bound_addresses
from quorate.server.advertised_host import AdvertisedHost
from quorate.server.config import load_config
from quorate.server.driver.raft_driver import ExitReason
from quorate.server.listeners import ListenerCertificates
from quorate.server.loop_watchdog import LoopWatchdog
from quorate.server.memory.gc_tuning import GcFreezer
from quorate.server.node import Node, Surroundings
from quorate.server.resource_limits import access_warning, check_descriptors
from quorate.server.restart_backoff import RestartBackoff
from quorate.server.state_machine import make_metadata_state_machine
from quorate.settings.port_checks import binding_port
from quorate.settings.properties import ConfigError, format_settings
from quorate.settings.tls import TlsError
from quorate.storage import layout
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.errors import StorageError, problem_of
from quorate.storage.file_system import OsFileSystem
from quorate.storage.meta_properties import read_meta
from quorate.storage.reserved_descriptors import is_resource_shortage
from quorate.telemetry import tracing
from quorate.telemetry.logs import LogFormat, configure_logs

if TYPE_CHECKING:
    from quorate.server.config import ControllerConfig
    from quorate.server.node import OpenedDirectory
    from quorate.server.state_machine import StateMachineFactory

log = logging.getLogger(__name__)
# The core limits the leadership transfer itself; this margin limits a core that does not respond.
_SHUTDOWN_MARGIN_S: Final = 2.0
_BEGINS_ANEW: Final = (ExitReason.DAMAGED, ExitReason.SHORT, ExitReason.UNHEARD)


def main_controller(
    path: str,
    *,
    state_machine_factory: StateMachineFactory = make_metadata_state_machine,
    stops_with_stdin: bool = False,
) -> int:
    """Read the properties file and run the controller; errors go to stderr."""
    try:
        config = load_config(path, os.environ)
        configure_logs(
            level=config.log_level,
            log_format=LogFormat(config.log_format),
            process_fields={"node": config.node_id},
        )
    except (ConfigError, ValueError) as error:
        sys.stderr.write(f"quorate controller: {error}\n")
        return 1
    return run_controller(
        config, state_machine_factory=state_machine_factory, stops_with_stdin=stops_with_stdin
    )


def run_controller(
    config: ControllerConfig,
    *,
    state_machine_factory: StateMachineFactory = make_metadata_state_machine,
    stops_with_stdin: bool = False,
) -> int:
    """Run until a stop signal or, if asked for, the end of stdin; return the exit status."""
    for warning in config.warnings:
        log.warning(warning)
    log.info("settings: %s", format_settings(config.effective))
    few_descriptors = check_descriptors()
    if few_descriptors is not None:
        log.warning(few_descriptors)
    if (too_open := access_warning(config.log.directory)) is not None:
        log.warning(too_open)
    lock = DirectoryLock(config.log.directory)
    try:
        certificates = ListenerCertificates(config.listeners)
        lock.acquire()
    except (OSError, StorageError, TlsError) as error:
        sys.stderr.write(f"quorate controller: {_refusal(config, error)}\n")
        return 1
    if config.tracing is not None:
        tracing.start(config.tracing, f"controller-{config.node_id}", _told_apart_by(config))
    try:
        status = uvloop.run(
            _serve(
                config,
                certificates,
                state_machine_factory=state_machine_factory,
                stops_with_stdin=stops_with_stdin,
            )
        )
    finally:
        STOP_SIGNALS.keep_on()
        tracing.stop()
    if status == 0:
        lock.release()
    # Otherwise a thread may still wait for the disk; the process's exit releases the lock.
    return status


def _told_apart_by(config: ControllerConfig) -> dict[str, str | int]:
    """Return the trace attributes of this process; a read error is reported later, by recovery."""
    meta = None
    with suppress(OSError, StorageError):
        meta = read_meta(OsFileSystem(), f"{config.log.directory}/{layout.META_PROPERTIES}")
    told: dict[str, str | int] = {
        "kraft.node.id": config.node_id,
        "service.instance.id": str(config.node_id),
        # Jaeger uses this to know which clock a span has. Without it, Jaeger doubts the order of
        # spans of one process if one begins after the end of its parent.
        "ip": config.peers.advertised.host,
    }
    if meta is not None:
        directory_id = format_uuid(meta.directory_id)
        told["kraft.cluster.id"] = meta.cluster_id
        told["kraft.directory.id"] = directory_id
        told["service.instance.id"] = f"{config.node_id}-{directory_id}"
    return told


def _refusal(config: ControllerConfig, error: Exception) -> str:
    if isinstance(error, FileNotFoundError) and not os.path.exists(config.log.directory):
        return f"metadata.log.dir {config.log.directory} does not exist: format it first"
    if isinstance(error, OSError):
        return problem_of(error, config.log.directory)
    return str(error)


async def _serve(
    config: ControllerConfig,
    listener_certificates: ListenerCertificates,
    *,
    state_machine_factory: StateMachineFactory,
    stops_with_stdin: bool,
) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    STOP_SIGNALS.on_stop(loop, stop.set)
    if stop.is_set():
        _stopped(ExitReason.STOPPED)
        return 0
    if stops_with_stdin:
        _stop_with_stdin(loop, stop)
    health = HealthServer(config.transport)
    passes = GcFreezer(loop)
    passes.start()
    watch = LoopWatchdog(loop)
    watch.start()
    advertised = AdvertisedHost(config.peers.advertised.host, secrets.SystemRandom())
    looking_up = loop.create_task(advertised.resolve())
    around = Surroundings(watch, advertised)
    try:
        resolved = await unless_stopped(stop, _with_addresses(config))
        if resolved is None:
            _stopped(ExitReason.STOPPED)
            return 0
        config = resolved
        if config.health_port >= 0:
            with binding_port("health.port", config.peers.hosts, config.health_port):
                await health.start(config.peers.hosts, config.health_port)
        restarts = RestartBackoff(secrets.SystemRandom())
        while True:
            begun_s = loop.time()
            node = Node(
                config,
                health,
                listener_certificates=listener_certificates,
                state_machine_factory=state_machine_factory,
                around=around,
            )
            try:
                ending = await _run_once(config, node, stop)
            except (ConfigError, MemoryError, OSError, RuntimeError) as error:
                # A port error has the reason as its cause.
                if not is_resource_shortage(error.__cause__ or error):
                    raise
                # The disk is healthy, and other processes may release the exhausted resource
                # (rule `disk_error_classes`).
                ending = ExitReason.SHORT
                about = {"repeats": (ending, type(error))}
                log.warning("could not begin: %s: %s", ending.value, str(error), extra=about)
            if ending not in _BEGINS_ANEW or stop.is_set():
                return 0 if ending in (ExitReason.STOPPED, *_BEGINS_ANEW) else 1
            lived_s = loop.time() - begun_s
            is_short = ending is ExitReason.SHORT
            wait_s = restarts.shortage_wait_s() if is_short else restarts.next_wait_s(lived_s)
            directory = config.log.directory
            again = "opening %s again in %.1f s: recovery heals what it can"
            log.warning(again, directory, wait_s, extra={"repeats": ending} if is_short else None)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), wait_s)
                return 0
            del node
            passes.refreeze()
    except (ConfigError, OSError, StorageError, RuntimeError) as error:
        sys.stderr.write(f"quorate controller: {_refusal(config, error)}\n")
        return 1
    finally:
        looking_up.cancel()
        watch.stop()
        passes.stop()
        await health.stop()


def _stop_with_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop at the end of standard input: the program that started this one has exited."""
    descriptor = sys.stdin.fileno()

    def readable() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            stop.set()

    loop.add_reader(descriptor, readable)


async def _with_addresses(config: ControllerConfig) -> ControllerConfig:
    """Resolve the hosts of the listeners to IP addresses. Raises ConfigError."""
    listeners = []
    for listener in config.listeners:
        bound = listener.bound
        addresses = await bound_addresses("listeners", bound.host, bound.port)
        listeners.append(replace(listener, addresses=addresses))
    return replace(config, listeners=tuple(listeners))


async def _run_once(config: ControllerConfig, node: Node, stop: asyncio.Event) -> ExitReason:
    limit_s = config.shutdown_timeout_ms / 1000 + _SHUTDOWN_MARGIN_S
    recovery = node.open()
    await _first(recovery, _event(stop))
    if stop.is_set():
        return await _stop_recovery(recovery, limit_s)
    await node.serve(await recovery)
    metrics = node.metrics_server()
    ending = ExitReason.CRASHED
    try:
        if config.metrics_port >= 0:
            with binding_port("metrics.port", config.peers.hosts, config.metrics_port):
                metrics.start(config.peers.hosts, config.metrics_port)
        await _first(_event(stop), _event(node.ended))
        if node.exit_reason is None:
            node.request_shutdown()
            await asyncio.wait([_event(node.ended)], timeout=limit_s)
        elif node.exit_reason is ExitReason.DISK_FAILED:
            # The process stays alive but not ready, so that the cause can be inspected
            # (rule `disk_fail_stop`).
            await stop.wait()
        ending = node.exit_reason or ExitReason.LATE
    finally:
        is_over = await node.stop(limit_s)
        # Stopping the metrics server blocks the loop, so the last replies are sent first.
        metrics.stop()
        if not is_over:
            # A disk call of this node may still be running; no other node may start in parallel
            # with it.
            over = (ExitReason.DISK_FAILED, ExitReason.CRASHED)
            ending = ending if ending in over else ExitReason.LATE
    return _stopped(ending)


async def _stop_recovery(recovery: asyncio.Future[OpenedDirectory], limit_s: float) -> ExitReason:
    """Stop before the core was started; it is not started, and no peer is contacted."""
    log.info("stopping as soon as the directory is recovered")
    await asyncio.wait([recovery], timeout=limit_s)
    if not recovery.done():
        log.error("recovery did not end in %s s", limit_s)
        return ExitReason.LATE
    recovery.result().store.close()
    return _stopped(ExitReason.STOPPED)


def _stopped(exit_reason: ExitReason) -> ExitReason:
    """Log the last line of an orderly end."""
    log.info("stopped", extra={"ending": exit_reason.name})
    return exit_reason


def _event(event: asyncio.Event) -> asyncio.Future[bool]:
    return asyncio.ensure_future(event.wait())


async def _first(*futures: asyncio.Future[Any]) -> None:
    """Wait for the first to complete, and cancel the tasks among the others."""
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    for future in futures:
        if isinstance(future, asyncio.Task):
            future.cancel()
