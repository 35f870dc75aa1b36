"""Opaque records of ours next to etcd's puts, and next to PySyncObj's appends, in one run."""

from __future__ import annotations

import sys
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench import etcd_cluster, hardware_limits, pysyncobj_cluster
from tests.bench.commit_load import EtcdSubject, Point, RawSubject, Result, rounds
from tests.bench.etcd_cluster import EtcdMembers
from tests.bench.failover import (
    etcd_restarts,
    kills,
    open_appends,
    open_puts,
    restarts,
    stops,
)
from tests.bench.pysyncobj_cluster import PySyncObjMembers, PySyncObjSubject
from tests.bench.quorate_cluster import QuorateMembers
from tests.bench.result_tables import Bounds, Row, render, render_bounds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.bench.commit_load import Subject

ONE: Final = Point(1)
MANY: Final = Point(64)
MOST: Final = Point(1024)
ONE_CALL: Final = Point(1, is_stream=False)
MANY_CALLS: Final = Point(64, is_stream=False)
MOST_CALLS: Final = Point(1024, is_stream=False)
SIXTEEN: Final = Point(64, 16, is_stream=False)
INSIDE: Final = (
    Point(1, is_inside=True),
    Point(64, is_inside=True),
    Point(1024, is_inside=True),
)
# A member that was down for longer than any backoff of its peers' channels.
DOWN_S: Final = 5.0
IDLE_FOLLOWER_MIB: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Measured:
    """The results of the rounds, by system and point."""

    results: Mapping[tuple[str, Point], list[Result]]

    def p50(self, name: str, point: Point) -> list[float]:
        return [result.p50_us for result in self.results[name, point]]

    def p99(self, name: str, point: Point) -> list[float]:
        return [result.p99_us for result in self.results[name, point]]

    def rate(self, name: str, point: Point) -> list[float]:
        return [result.per_s for result in self.results[name, point]]

    def cpu(self, name: str, point: Point) -> list[float]:
        return [result.cpu_us for result in self.results[name, point]]

    @property
    def generator_share(self) -> float:
        return max(result.generator_share for each in self.results.values() for result in each)


def run(root: Path, *, rounds: int, failovers: int) -> None:
    """Measure and print."""
    with ExitStack() as stack:
        raw = stack.enter_context(QuorateMembers(root, is_raw=True))
        raw.leader()
        idle_mib = raw.rss_mib()
        etcd = _etcd(root, stack)
        measured, flush_us, echo_us = _commits(root, raw, etcd, rounds)
        has_pysyncobj = ("pysyncobj", INSIDE[0]) in measured.results
        bounds = Bounds()
        _add_limits(bounds, measured, flush_us, echo_us)
        bounds.add("records in a flush, 64 in flight", "", _records_per_flush(raw))
        rss = raw.rss_mib()
        ours = kills(raw, open_appends, failovers), stops(raw, open_appends, failovers // 4 or 1)
        to_listen, to_fetch = restarts(raw, failovers // 4 or 1, DOWN_S)
        bounds.add("kill -9 of the leader to the next commit", "s", ours[0])
        bounds.add("SIGSTOP of the leader to the next commit", "s", ours[1], 4.0)
        bounds.add("restart of a member to its port", "s", to_listen)
        bounds.add("from its port to its next fetch", "s", to_fetch, 0.5)
        bounds.add("memory of a member at the start", "MiB", idle_mib, IDLE_FOLLOWER_MIB)
        bounds.add("memory of a member after the load", "MiB", rss)
        if etcd is not None:
            rows = _commit_rows(measured)
            rows += [
                Row(
                    "kill -9 to the next commit",
                    "s",
                    ours[0],
                    kills(etcd, open_puts, failovers),
                    at_most=1.0,
                ),
                Row(
                    "SIGSTOP to the next commit",
                    "s",
                    ours[1],
                    stops(etcd, open_puts, failovers // 4 or 1),
                ),
                Row(
                    "restart until the leader is known",
                    "s",
                    [a + b for a, b in zip(to_listen, to_fetch, strict=True)],
                    etcd_restarts(etcd, failovers // 4 or 1, DOWN_S),
                ),
                Row("memory of a member after the load", "MiB", rss, etcd.rss_mib()),
            ]
            print(render(f"Beside etcd, {rounds} rounds", "etcd", rows))
        if has_pysyncobj:
            print(render("Beside PySyncObj, load inside", "PySyncObj", _inside_rows(measured)))
        print(render_bounds("Ours alone", bounds))
        print(
            f"Limits of this run: a flush {flush_us:.0f} us with three at once, a message there and"
            f" back {echo_us[0]:.0f} us from the generator and {echo_us[1]:.0f} us between two"
            f" Python processes. The generator took {measured.generator_share:.2f} of a core at"
            " most, so it had time to spare.\n"
        )


def _etcd(root: Path, stack: ExitStack) -> EtcdMembers | None:
    if etcd_cluster.is_there():
        return stack.enter_context(EtcdMembers(root))
    print("etcd is not on the machine: Debian's package etcd-server has it\n", file=sys.stderr)
    return None


def _commits(
    root: Path, raw: QuorateMembers, etcd: EtcdMembers | None, count: int
) -> tuple[_Measured, float, tuple[float, float]]:
    flushes, echoes = [hardware_limits.flush_us(root)], [hardware_limits.echo_us()]
    ours = (ONE, MANY, MOST, ONE_CALL, MANY_CALLS, SIXTEEN)
    subjects: list[tuple[Subject, tuple[Point, ...]]] = [(RawSubject(raw), ours)]
    if etcd is not None:
        subjects.append((EtcdSubject(etcd), (ONE_CALL, MANY_CALLS, MOST_CALLS)))
    results = dict(rounds(count, subjects))
    flushes.append(hardware_limits.flush_us(root))
    echoes.append(hardware_limits.echo_us())
    results |= _inside(root, raw, count)
    return (
        _Measured(results),
        median(flushes),
        (median(one for one, _ in echoes), median(two for _, two in echoes)),
    )


def _inside(
    root: Path, raw: QuorateMembers, count: int
) -> Mapping[tuple[str, Point], list[Result]]:
    """Loads inside the leader; PySyncObj's members run only for these, since they never rest."""
    if not pysyncobj_cluster.is_there():
        print("PySyncObj is not installed: `make bench` does that\n", file=sys.stderr)
        return rounds(count, [(RawSubject(raw), INSIDE)])
    with PySyncObjMembers(root) as members:
        subjects: list[tuple[Subject, tuple[Point, ...]]]
        subjects = [(RawSubject(raw), INSIDE), (PySyncObjSubject(members), INSIDE)]
        return rounds(count, subjects)


def _commit_rows(measured: _Measured) -> list[Row]:
    ours, etcd = "quorate-raw", "etcd"
    return [
        Row("one append at a time, p50", "us", measured.p50(ours, ONE),
            measured.p50(etcd, ONE_CALL), at_most=1.4),
        Row("one append at a time, p99", "us", measured.p99(ours, ONE),
            measured.p99(etcd, ONE_CALL)),
        Row("one call at a time, p50", "us", measured.p50(ours, ONE_CALL),
            measured.p50(etcd, ONE_CALL), at_most=1.8),
        Row("records, 64 in flight on a stream", "/s", measured.rate(ours, MANY),
            measured.rate(etcd, MANY_CALLS), at_least=1.4),
        Row("records, 1,024 in flight on a stream", "/s", measured.rate(ours, MOST),
            measured.rate(etcd, MOST_CALLS), at_least=1.1),
        Row("records, 64 calls in flight", "/s", measured.rate(ours, MANY_CALLS),
            measured.rate(etcd, MANY_CALLS), at_least=0.3),
        Row("records, 64 calls of 16 in flight", "/s", measured.rate(ours, SIXTEEN),
            measured.rate(etcd, MANY_CALLS), at_least=3.5),
        Row("CPU of a record, 64 on a stream", "us", measured.cpu(ours, MANY),
            measured.cpu(etcd, MANY_CALLS), at_most=0.8),
        Row("CPU of a record, 64 calls", "us", measured.cpu(ours, MANY_CALLS),
            measured.cpu(etcd, MANY_CALLS), at_most=3.0),
    ]  # fmt: skip


def _inside_rows(measured: _Measured) -> list[Row]:
    ours, other = "quorate-raw", "pysyncobj"
    one, many, most = INSIDE
    return [
        Row("one append at a time, p50", "us", measured.p50(ours, one),
            measured.p50(other, one), at_most=0.9),
        Row("records, 64 in flight", "/s", measured.rate(ours, many),
            measured.rate(other, many), at_least=2.0),
        Row("records, 1,024 in flight", "/s", measured.rate(ours, most),
            measured.rate(other, most), at_least=4.0),
        Row("CPU of a record, 64 in flight", "us", measured.cpu(ours, many),
            measured.cpu(other, many)),
    ]  # fmt: skip


def _add_limits(
    bounds: Bounds, measured: _Measured, flush_us: float, echo_us: tuple[float, float]
) -> None:
    ours = "quorate-raw"
    inside = flush_us + echo_us[1]
    ones = measured.results[ours, ONE]
    bounds.add(
        "one append at a time, p50 to flush and two echoes", "x",
        [result.p50_us / (inside + echo_us[0]) for result in ones], 1.5,
    )  # fmt: skip
    bounds.add(
        "the same inside, to flush and one echo", "x",
        [value / inside for value in measured.p50(ours, INSIDE[0])], 1.8,
    )  # fmt: skip
    bounds.add(
        "one append at a time, p99 to p50", "x",
        [result.p99_us / result.p50_us for result in ones], 2.5,
    )  # fmt: skip


def _records_per_flush(raw: QuorateMembers) -> list[float]:
    """The number of records that share a flush of the leader."""
    leader = raw.leader()
    before = _metrics(raw, leader)
    RawSubject(raw).measure(MANY)
    after = _metrics(raw, leader)
    records, flushes = (after[i] - before[i] for i in range(2))
    return [records / flushes]


def _metrics(raw: QuorateMembers, member: int) -> tuple[float, float]:
    port = raw.quorum.nodes[member].metrics_port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    values = {line.split("{")[0]: float(line.rpartition(" ")[2]) for line in lines if "{" in line}
    return values["quorate_log_end_offset"], values["quorate_flush_duration_seconds_count"]
