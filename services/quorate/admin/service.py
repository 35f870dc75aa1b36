"""Entry point of the sidecar process: configuration, ports, signals.

It stays ready whatever happens to its controller, because it has to outlive that controller's stop.
Exit status 0 after a stop, 1 when it cannot start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import sys
from typing import TYPE_CHECKING, Final

import uvloop

from quorate.admin.call_log import CallLog
from quorate.admin.config import load_config
from quorate.admin.events import Events
from quorate.admin.prepare_stop import prepare_stop
from quorate.admin.statefulset import Outlook, StopIntent, StopIntentReader
from quorate.api.admin_api import AdminError
from quorate.client.controller_client import ControllerClient
from quorate.client.membership_client import MembershipClient
from quorate.process.interruption import unless_stopped
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.rpc.admin.servicer import AdminServicer
from quorate.rpc.channels import open_tls
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer
from quorate.rpc.listener import GrpcListener, bound_addresses
from quorate.rpc.security.authorization import CallerPolicy
from quorate.settings.port_checks import binding_port
from quorate.settings.properties import ConfigError, format_settings
from quorate.settings.tls import TlsError
from quorate.telemetry import tracing
from quorate.telemetry.logs import LogFormat, configure_logs
from quorate.telemetry.metrics import MetricsServer, process_readings

if TYPE_CHECKING:
    from quorate.admin.config import AdminConfig
    from quorate.api.admin_api import ChangeResult, PrepareStopRequest, PrepareStopResult
    from quorate.raft import messages as m
    from quorate.records.ids import NodeId
    from quorate.rpc.security.tls_files import TlsFiles

log = logging.getLogger(__name__)
EXPIRY_TICK_S: Final = 60.0
# Seconds between two reads of the StatefulSet.
LOOK_S: Final = 30.0
LOOK_UNREAD_S: Final = 5.0
# The sidecar is not ready once the StatefulSet could not be read for this many seconds.
UNREAD_S: Final = 60.0


class Sidecar:
    """Answers the admin API (`api.admin.AdminHandler`) through a membership client."""

    def __init__(
        self,
        client: MembershipClient,
        node_id: NodeId,
        request_timeout_ms: int,
        pod: StopIntentReader | None = None,
        events: Events | None = None,
    ) -> None:
        """In a pod of a StatefulSet, whose ordinals are the node ids, a stop may be permanent."""
        self._client = client
        self._node_id = node_id
        self._timeout_s = request_timeout_ms / 1000
        self._pod = pod
        self._events = events

    def _deadline(self, timeout_s: float | None) -> float:
        waits_s = self._timeout_s if timeout_s is None else timeout_s
        return asyncio.get_running_loop().time() + waits_s

    async def change(self, request: m.MembershipRequest, timeout_s: float | None) -> ChangeResult:
        return await self._client.change(request, self._deadline(timeout_s))

    async def describe(self, timeout_s: float | None) -> m.DescribeQuorumResponse:
        return await self._client.describe(self._deadline(timeout_s))

    async def prepare_stop(
        self, request: PrepareStopRequest, timeout_s: float | None
    ) -> PrepareStopResult:
        deadline = self._deadline(timeout_s)
        pod = self._pod

        async def look() -> Outlook | None:
            if request.leave:
                return Outlook(StopIntent.GOES_FOR_GOOD)
            return Outlook(StopIntent.RETURNS) if pod is None else await pod.read_cached()

        try:
            prepared = await prepare_stop(self._client, self._node_id, look, deadline=deadline)
        except AdminError as error:
            # The caller of a permanent stop is a person and gets the error itself.
            if self._events is not None and not request.leave:
                await self._events.tell_not_removed(error)
            raise
        if self._events is not None and prepared.is_needed:
            await self._events.tell_not_spared(prepared.without_leave)
        return prepared


def main_admin(path: str) -> int:
    """Read the properties file and run the sidecar until SIGTERM; errors go to stderr."""
    try:
        config = load_config(path, os.environ)
        configure_logs(
            level=config.log_level,
            log_format=LogFormat(config.log_format),
            process_fields={"node": config.node_id},
        )
    except (ConfigError, ValueError) as error:
        sys.stderr.write(f"quorate admin: {error}\n")
        return 1
    for warning in config.warnings:
        log.warning(warning)
    log.info("settings: %s", format_settings(config.effective))
    try:
        tls = open_tls(config.tls)
    except TlsError as error:
        sys.stderr.write(f"quorate admin: {error}\n")
        return 1
    told: dict[str, int | str] = {"kraft.node.id": config.node_id}
    told["service.instance.id"] = str(config.node_id)
    tracing.start(config.tracing, f"admin-{config.node_id}", told)
    try:
        return uvloop.run(_serve(config, tls))
    finally:
        STOP_SIGNALS.keep_on()
        tracing.stop()


async def _serve(config: AdminConfig, tls: TlsFiles | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    STOP_SIGNALS.on_stop(loop, stop.set)
    if stop.is_set():
        log.info("stopped")
        return 0
    pod = events = None
    if config.statefulset is not None:
        pod = StopIntentReader(config.statefulset, config.node_id)
        events = Events(config.statefulset, config.node_id, has_tls=tls is not None)
    calls = CallLog(
        config.node_id,
        lambda: None if tls is None else tls.expires_s,
        lambda: 0.0 if pod is None else pod.unread_s,
    )
    labels = {"node_id": str(config.node_id)}
    calls.registry.register(process_readings(labels))
    health, metrics = HealthServer(config.transport), MetricsServer(calls.registry)
    # Without principals no caller can be authorized for an operation.
    callers = CallerPolicy(config.access, have_names=tls is not None or config.access is not None)
    async with ControllerClient(
        config.servers, tls=tls, transport=config.transport, forwards=callers.have_names
    ) as client:
        membership = MembershipClient(client)
        sidecar = Sidecar(membership, config.node_id, config.request_timeout_ms, pod, events)
        server = GrpcListener.serving(
            (AdminServicer(sidecar, calls.record),),
            callers,
            has_reflection=config.has_reflection,
            transport=config.transport,
        )
        try:
            lookup = bound_addresses("admin.listener", config.host, config.port)
            own = await unless_stopped(stop, lookup)
            if own is None:
                log.info("stopped")
                return 0
            if config.health_port >= 0:
                with binding_port("health.port", own, config.health_port):
                    await health.start(own, config.health_port)
            if config.metrics_port >= 0:
                with binding_port("metrics.port", own, config.metrics_port):
                    metrics.start(own, config.metrics_port)
            with binding_port("admin.listener", own, config.port):
                server.bind(own, config.port, tls=tls)
            await server.start()
            await health.set(LIVENESS, serving=True)
            log.info(f"listens on port {config.port}")
            async with asyncio.TaskGroup() as tasks:
                watches = (_watch_certificate(tls), _watch_statefulset(pod, health))
                watching = [tasks.create_task(watch) for watch in watches]
                await stop.wait()
                for task in watching:
                    task.cancel()
            await health.set(READINESS, serving=False)
        except (ConfigError, OSError, RuntimeError) as error:
            sys.stderr.write(f"quorate admin: {error}\n")
            return 1
        finally:
            await server.stop(config.shutdown_timeout_ms / 1000)
            metrics.stop()
            await health.stop()
    log.info("stopped")
    return 0


async def _watch_certificate(tls: TlsFiles | None) -> None:
    """Warn before the own certificate expires."""
    if tls is None:
        return
    while True:
        warning = tls.expiry_warning()
        if warning is not None:
            log.warning(warning)
        await asyncio.sleep(EXPIRY_TICK_S)


async def _watch_statefulset(pod: StopIntentReader | None, health: HealthServer) -> None:
    """Report early that a stop would not know its reason.

    Started means that the StatefulSet was read once, so that a pod that never could does not count.
    Ready means that it was read within the last minute. Later loss of access is not a reason to
    withdraw pods that serve from their clients.
    """
    if pod is None:
        await health.set(STARTUP, serving=True)
        await health.set(READINESS, serving=True)
        return
    while True:
        await pod.read()
        await health.set(READINESS, serving=pod.unread_s < UNREAD_S)
        if pod.was_read:
            await health.set(STARTUP, serving=True)
        pause_s = LOOK_UNREAD_S if pod.unread_s else LOOK_S
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.0))  # noqa: S311 - it spreads pods
