"""One run: chaos for a while, then peace, then every check; and its report."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from tests.chaos.cluster import Cluster
from tests.chaos.history import Kind, Outcome
from tests.chaos.linearizability import UndecidedError, check
from tests.chaos.liveness import SECOND, gaps
from tests.chaos.monitor import Watch
from tests.chaos.nemesis import KINDS, Nemesis
from tests.chaos.stale_reads import Values, violations
from tests.chaos.workload import Workload
from tests.integration.disks import committed_batches
from tests.integration.transports import chosen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.chaos.history import History
    from tests.chaos.liveness import Gap

GAP_MAX_S: Final = 3.0
GAPS_TOLD: Final = 3
# How long before a gap lies what may have caused it.
CAUSE_NS: Final = 2 * SECOND
CRASHES: Final = ("ending=CRASHED", "Traceback")


@dataclass(slots=True)
class Report:
    """The findings of one run."""

    seed: int
    controllers: int
    seconds: float
    kinds: Sequence[str] = KINDS
    lines: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        command = (
            f"make chaos DURATION_S={self.seconds:g} CONTROLLERS={self.controllers}"
            f" CHAOS_SEED={self.seed} TRANSPORT={chosen()}"
        )
        if tuple(self.kinds) != KINDS:
            command += f" CHAOS_KINDS={','.join(self.kinds)}"
        found = self.violations or ["no violation"]
        return "\n".join([f"chaos: {command}", *self.lines, *found])


async def run(
    root: Path,
    *,
    controllers: int,
    seconds: float,
    seed: int,
    kinds: Sequence[str] = KINDS,
) -> Report:
    """Everything from the first start to the last check; nothing is left behind."""
    report = Report(seed, controllers, seconds, kinds)
    random = Random(seed)
    async with Cluster(
        root / "cluster",
        controllers,
        has_names="names" in kinds,
        has_log_readers="stderr" in kinds,
    ) as cluster:
        await cluster.leader()
        await cluster.register_brokers()
        watch = Watch(cluster)
        # Draws of their own: how many operations there were must not change the schedule.
        nemesis = Nemesis(cluster, watch, Random(random.random()), kinds)
        workload = Workload(cluster, Random(random.random()))
        tasks = [asyncio.create_task(work) for work in (watch.run(), workload.run())]
        try:
            await nemesis.run(seconds)
            end = time.monotonic_ns()
            watch.note("faults stop")
            await asyncio.sleep(1.0)
        finally:
            watch.is_over = workload.is_over = True
            await asyncio.gather(*tasks, return_exceptions=True)
        report.violations += [*nemesis.violations, *watch.violations]
        found = gaps(nemesis.health.intervals(end), workload.commits, watch.stolen)
        _tell(report, nemesis, watch, workload, found)
        try:
            await _judge(report, cluster, workload, watch.archived)
        except AssertionError as error:
            report.violations.append(f"{error}")
        if report.violations:
            report.lines += ["the whole story:", *watch.lines(), "the nodes:", cluster.tails()]
            (root / "report.txt").write_text(f"{report}\n", encoding="utf-8")
            raise AssertionError(f"{report}\nkept in {root}")
    return report


def _tell(
    report: Report, nemesis: Nemesis, watch: Watch, workload: Workload, found: list[Gap]
) -> None:
    """Counts, and the longest gaps with what happened around them."""
    outcomes = Counter(o.outcome for o in workload.history.operations if o.kind is not Kind.READ)
    current = sum(o.kind is Kind.READ for o in workload.history.operations)
    healthy = sum(b - a for a, b in nemesis.health.intervals(time.monotonic_ns())) / SECOND
    stolen = [b - a for a, b in watch.stolen]
    report.lines += [
        f"faults: {dict(sorted(nemesis.counts.items()))}, {watch.elections} leaders",
        f"writes: {outcomes[Outcome.OK]} acknowledged, {outcomes[Outcome.REFUSED]} refused,"
        f" {outcomes[Outcome.UNKNOWN]} of unknown outcome, {workload.without_effect} without",
        f"reads: {current} current, {len(workload.history.local_reads) - current} at an offset",
        f"a majority was up and connected for {healthy:.0f} of {report.seconds:g} s",
        f"this process was without processor for {sum(stolen) / SECOND:.2f} s,"
        f" {max(stolen, default=0) / SECOND:.2f} s at a time",
    ]
    for gap in found[:GAPS_TOLD]:
        since = (gap.begin - watch.begin) / SECOND
        report.lines.append(
            f"no commit for {gap.seconds:.2f} s from {since:.2f} s on"
            f" (without {gap.stolen / SECOND:.2f} s of missing processor)"
        )
        report.lines += watch.lines(gap.begin - CAUSE_NS, gap.end)
    report.violations += [
        f"no commit for {gap.seconds:.2f} s although a majority was up and connected,"
        f" from {(gap.begin - watch.begin) / SECOND:.2f} s on"
        for gap in found
        if gap.seconds > GAP_MAX_S
    ]


async def _judge(
    report: Report, cluster: Cluster, workload: Workload, archived: dict[int, bytes]
) -> None:
    """Check the logs, the current reads and all other reads, after all nodes have caught up."""
    high_watermark = await cluster.assert_logs_agree()
    await workload.read_everything(high_watermark)
    # Commits of that time, by sessions of brokers for example, belong to the story too.
    high_watermark = await cluster.assert_logs_agree()
    report.lines.append(f"the logs agree byte for byte below {high_watermark}")
    batches = dict(archived)
    for node in cluster.nodes.values():
        batches |= committed_batches(node, 0, high_watermark)
    values = Values()
    values.replay(batches[base] for base in sorted(batches))
    if values.end != high_watermark:
        report.violations.append(f"the log could be put together up to {values.end} only")
    report.violations += violations(workload.history.local_reads, values)
    report.violations += _not_linearizable(workload.history)
    for node_id, node in cluster.nodes.items():
        output = node.output_path.read_text(encoding="utf-8", errors="replace")
        report.violations += [
            f"controller {node_id} says: {line}"
            for line in output.splitlines()
            if any(word in line for word in CRASHES)
        ]


def _not_linearizable(history: History) -> list[str]:
    found = []
    for key, operations in history.by_key().items():
        try:
            verdict = check(operations)
        except UndecidedError as error:
            found.append(f"not decided: {error}")
            continue
        if verdict.is_linearizable:
            continue
        assert verdict.stuck is not None
        at = operations.index(verdict.stuck)
        around = "\n".join(f"  {o} [{o.begin}, {o.end}]" for o in operations[at - 15 : at + 15])
        found.append(f"{key} is not linearizable: nothing explains {verdict.stuck}\n{around}")
    return found
