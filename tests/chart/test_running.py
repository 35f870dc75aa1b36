"""Controllers, a sidecar and an operator as processes: what they tell is what is documented.

And it is what alerts and the dashboard ask for; alerts fire when controllers are stopped.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.chart.kubernetes_api import kubernetes_api
from tests.chart.monitoring import (
    NAMESPACE,
    STATEFUL_SET,
    dashboard_of,
    queries_of,
    rules_of,
)
from tests.chart.rendering import ROOT
from tests.chart.scraping import Target, scrape
from tests.integration.admin.sidecars import sidecar_of
from tests.integration.quorum import DEADLINE_S, Quorum
from tests.integration.security.secure_quorum import SecureQuorum
from tests.integration.security.stores import Stores
from tests.integration.security.test_sidecar import certificate_of
from tests.ports import free_ports
from tests.promql import Samples, evaluate, metric_names

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest
    from prometheus_client import Metric

    from tests.chart.rendering import Helm

ROW: Final = re.compile(r"\| `(quorate_\w+)` \| (\w+)(?: by (`\w+`(?:, `\w+`)*))? \| ([^|]*) \|")
# Kind and words of each metric.
Told: TypeAlias = dict[str, tuple[str, str]]


def documented(section: str) -> Told:
    """Kind and words of each metric that docs/metrics.md has of one kind of process."""
    text = (ROOT / "docs" / "metrics.md").read_text()
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    tracing = text.partition("### Logs and tracing\n")[2].partition("\nWhere these differ")[0]
    return {name: (kind, words) for name, kind, _, words in ROW.findall(part + tracing)}


def told(families: list[Metric]) -> Told:
    """The same of a scrape."""
    return {
        family.name + ("_total" if family.type == "counter" else ""): (
            family.type,
            family.documentation,
        )
        for family in families
        if family.name.startswith("quorate_")
    }


@asynccontextmanager
async def operator(folder: Path) -> AsyncIterator[int]:
    """An operator of a StatefulSet that has no pods; the port of its metrics."""
    health_port, metrics_port = free_ports(2)
    with kubernetes_api(folder) as kubeconfig:
        settings = {
            "KUBECONFIG": str(kubeconfig),
            "QUORATE_AUTOJOIN_STATEFULSET": STATEFUL_SET,
            "QUORATE_AUTOJOIN_NAMESPACE": NAMESPACE,
            "QUORATE_AUTOJOIN_INTERVAL_MS": "100",
            "QUORATE_HEALTH_PORT": str(health_port),
            "QUORATE_METRICS_PORT": str(metrics_port),
        }
        output = folder / "operator.log"
        with output.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "quorate.cli.main", "autojoin"),
                env=os.environ | settings,
                stderr=log,
            )
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await _has_passed(metrics_port):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
            yield metrics_port
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(DEADLINE_S):
                assert await process.wait() == 0, output.read_text()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _has_passed(port: int) -> bool:
    try:
        families = await scrape(port)
    except OSError:
        return False
    name = "quorate_autojoin_desired_replicas"
    return any(family.name == name and family.samples for family in families)


async def test_processes_tell_what_is_documented_and_asked_for(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # TLS, a snapshot and an operator give all the metrics that depend on conditions.
    monkeypatch.setenv("QUORATE_METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS", "1")
    stores = Stores(tmp_path / "stores")
    stores.give("admin")
    certificate = certificate_of(stores, "admin")
    async with (
        SecureQuorum(tmp_path / "quorum", stores, controllers=1) as quorum,
        sidecar_of(quorum, 1, tmp_path, certificate) as sidecar,
        operator(tmp_path) as operator_port,
    ):
        port = quorum.nodes[1].metrics_port

        async def has_snapshot() -> bool:
            names = {family.name for family in await scrape(port)}
            return "quorate_latest_snapshot_generated_bytes" in names

        await quorum.eventually("a snapshot is taken", has_snapshot)
        controllers, sidecars, operators = (
            await scrape(port),
            await scrape(sidecar.metrics_port),
            await scrape(operator_port),
        )
    assert told(controllers) == documented("Controllers")
    assert told(sidecars) == documented("Admin sidecars")
    assert told(operators) == documented("Operators")
    there = {
        sample.name
        for families in (controllers, sidecars, operators)
        for family in families
        for sample in family.samples
    }
    expressions = [rule.expression for rule in rules_of(helm)]
    expressions += queries_of(dashboard_of(helm)["panels"])
    asked = set[str]().union(*map(metric_names, expressions))
    # Prometheus itself writes `up`, and kube-state-metrics those of its own.
    of_others = {name for name in asked if name == "up" or name.startswith("kube_")}
    assert len(asked) > 40
    # A series for each action, of which this operator has none; its family was compared above.
    assert asked - of_others - there <= {"quorate_autojoin_actions_total"}


# A busy machine may well make them fire, and each that is killed costs elections.
OF_THE_MACHINE: Final = {
    "QuorateCommitsSlow",
    "QuorateDiskFull",
    "QuorateDiskHangs",
    "QuorateDiskSlow",
    "QuorateElectionsRepeated",
    "QuorateElectionsTooFrequent",
    "QuorateEventLoopBusy",
    "QuorateEventLoopStalls",
    "QuorateSnapshotsSlow",
}


OF_LEADERS: Final = (
    "number_of_observers",
    "number_of_offline_voters",
    "uncommitted_voter_change",
)


async def test_alerts_fire_when_controllers_are_stopped(helm: Helm, tmp_path: Path) -> None:
    every = rules_of(helm, "--set", "operator.enabled=false")
    rules = [rule for rule in every if rule.name not in OF_THE_MACHINE]
    assert len(rules) == len(every) - len(OF_THE_MACHINE)
    async with Quorum(tmp_path / "quorum") as quorum:
        targets = [
            Target(f"{STATEFUL_SET}-{node.node_id}", node.metrics_port)
            for node in quorum.nodes.values()
        ]
        samples = Samples()
        clock = asyncio.get_running_loop().time

        async def firing() -> set[str]:
            """Those whose condition holds now; for how long it has to is another test's."""
            at_s = clock()
            for target in targets:
                await target.look(samples, at_s)
            return {rule.name for rule in rules if evaluate(rule.expression, samples, at_s)}

        async def await_firing(*names: str) -> None:
            seen: list[set[str]] = []

            async def are_firing() -> bool:
                seen[:] = [await firing()]
                return seen == [set(names)]

            try:
                await quorum.eventually("these alerts fire and no others", are_firing)
            except AssertionError as error:
                error.add_note(f"wanted {set(names)}, fire at last: {seen}")
                raise

        leader_id = (await quorum.leader()).leader.leader_id
        first, second = (node_id for node_id in quorum.nodes if node_id != leader_id)
        await await_firing()

        def told_by(expression: str) -> list[str]:
            found = evaluate(expression, samples, clock())
            assert isinstance(found, dict)
            return [dict(labels)["node_id"] for labels in found]

        async def the_leader_alone_tells() -> bool:
            await firing()
            leaders = told_by("quorate_active_controller == 1")
            return len(leaders) == 1 and all(told_by(f"quorate_{n}") == leaders for n in OF_LEADERS)

        # It is not 0 elsewhere, but absent; another election may come between two scrapes.
        await quorum.eventually("a leader alone tells what it knows", the_leader_alone_tells)
        await quorum.kill(first)
        await await_firing("QuorateVoterMissing", "QuorateMajorityAtRisk")
        await quorum.kill(second)
        # No controller is left to report which ones are missing.
        await await_firing("QuorateNoActiveController", "QuorateControllerNotReady")
        await asyncio.gather(quorum.start(first), quorum.start(second))
        await await_firing()
