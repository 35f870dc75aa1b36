"""Metadata writes of ours next to stock Kafka's controllers, in one run and by one process."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from tests.bench import kafka_cluster
from tests.bench.commit_load import Point, rounds
from tests.bench.failover import hand_overs, kills
from tests.bench.kafka_cluster import KafkaMembers
from tests.bench.metadata_load import KafkaSubject, MetadataSubject, open_kafka_writes, open_writes
from tests.bench.quorate_cluster import QuorateMembers
from tests.bench.result_tables import Bounds, Row, render, render_bounds
from tests.bench.startup import (
    idle,
    kafka_formats,
    kafka_starts,
    quorate_formats,
    quorate_starts,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.bench.commit_load import Result

IN_FLIGHT: Final = (1, 8, 64, 1024)
POINTS: Final = tuple(Point(number) for number in IN_FLIGHT)
TOPICS: Final = Point(64, creates_topics=True)
STARTS: Final = 5
_WARM_ROUNDS: Final = 1


def run(root: Path, jars: Path, *, rounds: int, failovers: int) -> None:
    """Measure and print."""
    problem = kafka_cluster.problem(jars)
    if problem is not None:
        print(f"stock Kafka is left out: {problem}\n", file=sys.stderr)
        return
    bounds = Bounds()
    rows = _starting(root, jars, bounds)
    with ExitStack() as stack:
        session = {"broker.session.timeout.ms": str(kafka_cluster.SESSION_MS)}
        ours = QuorateMembers(root, overrides=session)
        theirs = KafkaMembers(root, jars)
        for member in range(theirs.count):
            theirs.format(member)
        stack.enter_context(ours)
        stack.enter_context(theirs)
        subjects = MetadataSubject(ours), KafkaSubject(theirs)
        for subject in subjects:
            subject.prepare()
        rows += _idle(ours, theirs, bounds)
        rows += _commits(subjects, rounds)
        # Both have tens of thousands of topics to replay.
        ours.settles_s = theirs.settles_s = 4.0
        killed = kills(ours, open_writes, failovers)
        handed = hand_overs(ours, open_writes, failovers)
        bounds.add("kill -9 of the leader to the next commit", "s", killed, 0.4)
        bounds.add("SIGTERM of the leader to the next commit", "s", handed)
        rows += [
            Row("kill -9 to the next commit", "s", killed,
                kills(theirs, open_kafka_writes, failovers)),
            Row("SIGTERM to the next commit", "s", handed,
                hand_overs(theirs, open_kafka_writes, failovers)),
        ]  # fmt: skip
    print(render(f"Beside stock Kafka, {rounds} rounds", "Kafka", rows))
    print(render_bounds("Ours alone", bounds))


def _starting(root: Path, jars: Path, bounds: Bounds) -> list[Row]:
    formats, starts = quorate_formats(root, STARTS), quorate_starts(root, STARTS)
    bounds.add("storage format", "s", formats, 0.5)
    bounds.add("a single controller, start to active", "s", starts, 1.0)
    return [
        Row("storage format", "s", formats, kafka_formats(root, jars, STARTS)),
        Row("a single controller, start to active", "s", starts, kafka_starts(root, jars, STARTS)),
    ]


def _idle(ours: QuorateMembers, theirs: KafkaMembers, bounds: Bounds) -> list[Row]:
    (our_shares, our_mib), (their_shares, their_mib) = idle(ours), idle(theirs)
    bounds.add("idle, of a core", "%", our_shares, 1.0)
    bounds.add("idle, memory", "MiB", our_mib, 80.0)
    return [
        Row("idle, of a core", "%", our_shares, their_shares),
        Row("idle, memory", "MiB", our_mib, their_mib),
    ]


def _commits(subjects: tuple[MetadataSubject, KafkaSubject], count: int) -> list[Row]:
    points = (*POINTS, TOPICS)
    # A Java virtual machine is fast only after it has done the same for a while.
    rounds(_WARM_ROUNDS, [(subjects[1], points)])
    results = rounds(count, [(subject, points) for subject in subjects])
    rows = [_latency(results, POINTS[0], at_most=0.1)]
    rows += [_rate(results, point) for point in POINTS]
    rows.append(_rate(results, TOPICS))
    rows.append(
        Row(
            "CPU of a write, 64 in flight",
            "us",
            [result.cpu_us for result in results["quorate", POINTS[2]]],
            [result.cpu_us for result in results["kafka", POINTS[2]]],
            at_most=1.0,
        )
    )
    return rows


def _latency(
    results: Mapping[tuple[str, Point], list[Result]], point: Point, *, at_most: float
) -> Row:
    ours, theirs = ([r.p50_us for r in results[name, point]] for name in ("quorate", "kafka"))
    return Row("one config at a time, p50", "us", ours, theirs, at_most=at_most)


def _rate(results: Mapping[tuple[str, Point], list[Result]], point: Point) -> Row:
    what = "topics" if point.creates_topics else "configs"
    ours, theirs = ([r.per_s for r in results[name, point]] for name in ("quorate", "kafka"))
    at_least = 5.0 if point == POINTS[2] else None
    return Row(f"{what}, {point.in_flight:,} in flight", "/s", ours, theirs, at_least=at_least)
