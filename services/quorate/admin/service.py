"""The sidecar's process: configuration, ports, signals.

It is ready as soon as it listens, whatever becomes of the controller beside it: it has to outlive
that one's stop. Exit status 0 after a stop, 1 when it cannot start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from typing import TYPE_CHECKING, Final

import uvloop

from quorate.admin.calls import CallLog
from quorate.admin.config import load_config
from quorate.admin.statefulset import Fate, FateOfPod
from quorate.admin.stopping import prepare_stop
from quorate.client.controller_client import ControllerClient
from quorate.client.membership import MembershipClient
from quorate.process.interruption import unless_stopped
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.rpc.admin_server import AdminService
from quorate.rpc.authorization import Callers
from quorate.rpc.channels import open_tls
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer
from quorate.rpc.listener import GrpcListener, bound_addresses
from quorate.settings.ports import taking_port
from quorate.settings.properties import ConfigError, format_settings
from quorate.settings.tls import TlsError
from quorate.telemetry import tracing
from quorate.telemetry.logs import LogFormat, configure_logs
from quorate.telemetry.metrics import MetricsServer, process_readings

if TYPE_CHECKING:
    from quorate.admin.config import AdminConfig
    from quorate.api.admin import Done, Prepared, PrepareStopRequest
    from quorate.raft import messages as m
    from quorate.records.ids import NodeId
    from quorate.rpc.tls import TlsFiles

log = logging.getLogger(__name__)
EXPIRY_TICK_S: Final = 60.0
_ANY_HOST: Final = "0.0.0.0"  # noqa: S104 - probes and scrapes come from other machines


class Sidecar:
    """Answers the admin API (`api.admin.AdminHandler`) through a membership client."""

    def __init__(
        self,
        client: MembershipClient,
        node_id: NodeId,
        request_timeout_ms: int,
        pod: FateOfPod | None = None,
    ) -> None:
        """In a pod of a StatefulSet, whose ordinals are the node ids, a stop may be for good."""
        self._client = client
        self._node_id = node_id
        self._timeout_s = request_timeout_ms / 1000
        self._pod = pod

    def _deadline(self, timeout_s: float | None) -> float:
        waits_s = self._timeout_s if timeout_s is None else timeout_s
        return asyncio.get_running_loop().time() + waits_s

    async def change(self, request: m.MembershipRequest, timeout_s: float | None) -> Done:
        return await self._client.change(request, self._deadline(timeout_s))

    async def describe(self, timeout_s: float | None) -> m.DescribeQuorumResponse:
        return await self._client.describe(self._deadline(timeout_s))

    async def prepare_stop(self, request: PrepareStopRequest, timeout_s: float | None) -> Prepared:
        deadline = self._deadline(timeout_s)
        pod = self._pod

        async def look() -> Fate | None:
            if request.leave:
                return Fate.GOES_FOR_GOOD
            return Fate.RETURNS if pod is None else await pod.look_again()

        return await prepare_stop(self._client, self._node_id, look, deadline=deadline)


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
    tracing.start(config.tracing, "quorate-admin", told)
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
    calls = CallLog(config.node_id, lambda: None if tls is None else tls.expires_s)
    labels = {"node_id": str(config.node_id)}
    calls.registry.register(process_readings(labels))
    health, metrics = HealthServer(config.transport), MetricsServer(calls.registry)
    # Without names there is nobody to call for.
    callers = Callers(config.access, have_names=tls is not None or config.access is not None)
    async with ControllerClient(
        config.servers, tls=tls, transport=config.transport, forwards=callers.have_names
    ) as client:
        membership = MembershipClient(client)
        named = config.statefulset
        pod = None if named is None else FateOfPod(named, config.node_id)
        sidecar = Sidecar(membership, config.node_id, config.request_timeout_ms, pod)
        server = GrpcListener.serving(
            (AdminService(sidecar, calls.record),),
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
            hosts = tuple(host or _ANY_HOST for host in own)
            if config.health_port >= 0:
                with taking_port("health.port", hosts, config.health_port):
                    await health.start(hosts, config.health_port)
            if config.metrics_port >= 0:
                with taking_port("metrics.port", hosts, config.metrics_port):
                    metrics.start(hosts, config.metrics_port)
            with taking_port("admin.listener", own, config.port):
                server.bind(own, config.port, tls=tls)
            await server.start()
            for service in (LIVENESS, STARTUP, READINESS):
                await health.set(service, serving=True)
            log.info(f"listens on port {config.port}")
            await _watch(tls, pod, stop)
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


async def _watch(tls: TlsFiles | None, pod: FateOfPod | None, stop: asyncio.Event) -> None:
    """Warn before the own certificate ends, and of rights that lack, until it is time to stop."""
    while not stop.is_set():
        if pod is not None:
            await pod.learn()
        warning = None if tls is None else tls.expiry_warning()
        if warning is not None:
            log.warning(warning)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), EXPIRY_TICK_S)
