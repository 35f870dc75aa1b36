"""Entry point of the operator process: configuration, lease, reconcile loop, signals.

It is ready while all is in step, or while another operator acts (readiness.py). It is alive while
its event loop runs: each pass has bounded calls. Exit status 0 after a stop, 1 on a failed start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from quorate.autojoin.config import own_namespace, read_config
from quorate.autojoin.kube_client import KubeClient, connect
from quorate.autojoin.lease import Lease
from quorate.autojoin.metrics import Meters
from quorate.autojoin.quorum_client import PodQuorum
from quorate.autojoin.readiness import Readiness
from quorate.autojoin.reconcile_spans import ReconcileSpans
from quorate.autojoin.reconciler import ClusterError, Reconciler
from quorate.autojoin.watches import watch
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.rpc.channels import open_tls
from quorate.rpc.health import LIVENESS, READINESS, STARTUP, HealthServer
from quorate.settings.port_checks import binding_port
from quorate.settings.properties import ConfigError, format_settings
from quorate.settings.property_files import read_properties
from quorate.settings.tls import TlsError
from quorate.telemetry import tracing
from quorate.telemetry.logs import LogFormat, configure_logs
from quorate.telemetry.metrics import MetricsServer, process_readings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from kubernetes.aio import client as k8s

    from quorate.autojoin.config import AutojoinConfig
    from quorate.rpc.security.tls_files import TlsFiles

log = logging.getLogger(__name__)
# Probes and scrapes come from other machines.
_ANY_HOST: Final = ""
# After an action or event, in seconds: long enough to join several events in one pass.
SOON_S: Final = 0.25
BACKOFF_MAX_S: Final = 30.0
WATCH_STOP_S: Final = 5.0
# Limit in seconds to withdraw the conditions; only then does the next operator get the Lease.
WITHDRAW_S: Final = 2.0
# Seconds by which a result may be older than the interval: the time for calls of a slow pass.
PASS_S_MAX: Final = 45.0
READINESS_S: Final = 1.0
# Failures in a row, after which an operator of another release may try.
FAILURES_MAX: Final = 3


def main_autojoin(path: str | None) -> int:
    """Read the properties, and run the operator until SIGTERM; errors go to stderr."""
    try:
        properties = {} if path is None else read_properties(path)
        config = read_config(properties, os.environ, namespace=own_namespace())
        configure_logs(
            level=config.log_level,
            log_format=LogFormat(config.log_format),
            process_fields={"statefulset": config.stateful_set},
        )
        tls = open_tls(config.tls)
    except (ConfigError, TlsError, ValueError) as error:
        sys.stderr.write(f"quorate autojoin: {error}\n")
        return 1
    for warning in config.warnings:
        log.warning(warning)
    log.info("settings: %s", format_settings(config.effective))
    told = {
        "service.instance.id": config.identity,
        "k8s.namespace.name": config.namespace,
        "k8s.statefulset.name": config.stateful_set,
    }
    tracing.start(config.tracing, "autojoin", told)
    try:
        return asyncio.run(_serve(config, tls))
    finally:
        STOP_SIGNALS.keep_on()
        tracing.stop()


async def _serve(config: AutojoinConfig, tls: TlsFiles | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    STOP_SIGNALS.on_stop(loop, stop.set)
    if stop.is_set():
        log.info("stopped")
        return 0
    meters = Meters(config.stateful_set, time.time())
    health = HealthServer(config.transport)
    labels = {"statefulset": config.stateful_set}
    meters.registry.register(process_readings(labels))
    metrics = MetricsServer(meters.registry)
    try:
        api = await connect()
        if config.health_port >= 0:
            with binding_port("health.port", _ANY_HOST, config.health_port):
                await health.start(_ANY_HOST, config.health_port)
        if config.metrics_port >= 0:
            with binding_port("metrics.port", _ANY_HOST, config.metrics_port):
                metrics.start(_ANY_HOST, config.metrics_port)
        for service in (LIVENESS, STARTUP):
            await health.set(service, serving=True)

        async def show_ready(is_ready: bool) -> None:  # noqa: FBT001 - the whole of what it says
            await health.set(READINESS, serving=is_ready)

        async with api:
            await Operator(config, api, tls, meters, show_ready).run(stop)
    except (ClusterError, ConfigError, OSError, RuntimeError) as error:
        sys.stderr.write(f"quorate autojoin: {error}\n")
        return 1
    finally:
        metrics.stop()
        await health.stop()
    log.info("stopped")
    return 0


class Operator:
    """Runs passes while it holds the Lease."""

    def __init__(
        self,
        config: AutojoinConfig,
        api: k8s.ApiClient,
        tls: TlsFiles | None,
        meters: Meters,
        show_ready: Callable[[bool], Awaitable[None]],
    ) -> None:
        """`show_ready` is called when readiness has changed."""
        self._config = config
        self._meters = meters
        self._show_ready = show_ready
        self._is_ready = False
        self._wake = asyncio.Event()
        self._renew_soon = asyncio.Event()
        # The template of the StatefulSet in the last pass.
        self._wanted_template = ""
        # Failed passes in a row.
        self._failures = 0
        self._lease = Lease(
            api,
            name=f"{config.stateful_set}-autojoin",
            namespace=config.namespace,
            identity=config.identity,
            duration_ms=config.lease_ms,
            template=config.template,
            clock_s=time.monotonic,
        )
        self._readiness = Readiness(
            self._lease,
            fresh_s=config.interval_ms / 1000 + PASS_S_MAX,
            clock_s=time.monotonic,
        )
        self._quorum = PodQuorum(
            config.namespace,
            controller_port=config.controller_port,
            admin_port=config.admin_port,
            timeout_s=config.request_timeout_ms / 1000,
            tls=tls,
            transport=config.transport,
        )
        self._reconciler = Reconciler(
            KubeClient(api, config),
            self._quorum,
            now_ms=lambda: time.time_ns() // 1_000_000,
            timestamp=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            reconcile_spans=ReconcileSpans(time.time_ns, time.monotonic_ns),
            may_act=self._lease.is_held,
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop`. If a part ends, the process exits, and Kubernetes restarts it."""
        name, namespace = self._config.stateful_set, self._config.namespace
        watching = asyncio.create_task(watch(name, namespace, self._wake.set, stop))
        parts = [
            asyncio.create_task(self._keep_lease(stop)),
            asyncio.create_task(self._keep_quorum(stop)),
            asyncio.create_task(self._keep_readiness(stop)),
            asyncio.create_task(stop.wait()),
        ]
        try:
            done, _ = await asyncio.wait([watching, *parts], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if not stop.is_set():
                raise RuntimeError("a part of the operator has ended by itself")
        finally:
            stop.set()
            # The next operator starts as soon as it has the Lease: the watches end after that.
            await _cancelled(*parts)
            await self._hand_on()
            await asyncio.wait([watching], timeout=WATCH_STOP_S)
            await _cancelled(watching)
            await self._quorum.close()

    async def _hand_on(self) -> None:
        """Withdraw the conditions that this operator has published, and release the Lease."""
        await self._set_ready(is_ready=False)
        with contextlib.suppress(ClusterError, TimeoutError):
            if self._lease.is_held():
                async with asyncio.timeout(WITHDRAW_S):
                    await self._reconciler.withdraw()
        with contextlib.suppress(ClusterError):
            await self._lease.release()

    async def _keep_lease(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            was_held, turn = self._lease.is_held(), self._lease.turn
            try:
                await self._lease.renew()
            except ClusterError as error:
                log.warning(f"cannot renew the lease: {error}", extra={"repeats": "lease"})
            self._meters.lease(held=self._lease.is_held())
            if self._lease.turn != turn:
                self._reconciler.begin()
                self._readiness.judge(is_in_step=False)
            if self._lease.is_held() and not was_held:
                self._wake.set()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._renew_soon.wait(), self._lease.wait_s)
            self._renew_soon.clear()

    async def _keep_readiness(self, stop: asyncio.Event) -> None:
        """Update readiness, which also expires with the Lease or with the last result."""
        while not stop.is_set():
            is_ready = self._readiness.is_ready()
            if self._lease.note(is_in_step=is_ready and self._lease.is_held()):
                self._renew_soon.set()
            await self._set_ready(is_ready=is_ready)
            await _sleep(stop, READINESS_S)

    async def _set_ready(self, *, is_ready: bool) -> None:
        if is_ready != self._is_ready:
            self._is_ready = is_ready
            await self._show_ready(is_ready)

    async def _keep_quorum(self, stop: asyncio.Event) -> None:
        failures = 0
        while not stop.is_set():
            wait_s = self._config.interval_ms / 1000
            if not self._lease.is_held():
                # An operator that takes over starts immediately.
                failures = 0
            else:
                outcome = await self._pass()
                failures = failures + 1 if outcome is None else 0
                self._give_way_if_awaited()
                if outcome:
                    wait_s = 0.0
                elif failures:
                    wait_s = min(BACKOFF_MAX_S, wait_s * 2 ** min(failures - 1, 8))
                    wait_s *= random.uniform(0.5, 1.0)  # noqa: S311 - jitter guards nothing
            if failures:
                await _sleep(stop, wait_s)
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), max(wait_s, 0.001))
            self._wake.clear()
            await _sleep(stop, SOON_S)

    def _give_way_if_awaited(self) -> None:
        """Give the Lease to a standby of the StatefulSet's release, or to one that may do better.

        A holder of the StatefulSet's own release keeps it: the other one would give it back.
        """
        standby, own = self._lease.standby_template(), self._config.template
        is_stuck = self._failures >= FAILURES_MAX and self._wanted_template != own
        if standby and self._lease.is_held() and (is_stuck or standby == self._wanted_template):
            self._lease.give_way(standby)
            self._failures = 0
            self._meters.lease(held=False)
            self._renew_soon.set()

    async def _pass(self) -> bool | None:
        """Run a pass; True if it acted, so that the next is due immediately, None if it failed."""
        try:
            with self._meters.time_pass():
                done = await self._reconciler.run()
        except (ClusterError, ValueError) as error:
            self._meters.failed()
            self._failures += 1
            self._readiness.judge(is_in_step=False)
            log.warning(f"no pass: {error}", extra={"repeats": "pass"})
            return None
        self._meters.passed(done, time.time())
        # The Lease may have been lost during the pass, and a standby clears its gauges.
        self._meters.lease(held=self._lease.is_held())
        self._readiness.judge(is_in_step=done.is_in_step)
        self._failures = 0
        if done.desired is not None:
            self._wanted_template = done.desired.template
        return done.has_acted if done.error is None else None


async def _sleep(stop: asyncio.Event, wait_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), wait_s)


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
