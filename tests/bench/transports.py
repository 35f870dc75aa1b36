"""Both transports of ours in one run, next to each other, etcd and stock Kafka."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from quorate.settings.transport import Transport
from tests.bench import etcd_cluster, kafka_cluster
from tests.bench.commit_load import EtcdSubject, Point, RawSubject, rounds
from tests.bench.etcd_cluster import EtcdMembers
from tests.bench.kafka_cluster import KafkaMembers
from tests.bench.metadata_load import KafkaSubject, MetadataSubject
from tests.bench.quorate_cluster import QuorateMembers
from tests.bench.result_tables import Row, render

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.bench.commit_load import Result, Subject

ONE: Final = Point(1)
MANY: Final = Point(64)
MOST: Final = Point(1024)
TOPICS: Final = Point(64, creates_topics=True)
RAW: Final = (ONE, MANY, MOST)
METADATA: Final = (*RAW, TOPICS)
# etcd has no stream that takes many puts.
_CALLS: Final = {point: Point(point.in_flight, is_stream=False) for point in RAW}
_OLD, _NEW = Transport.GRPCIO, Transport.H2


def run(root: Path, jars: Path, *, rounds: int) -> None:
    """Measure and print."""
    _opaque(root, rounds)
    _metadata(root, jars, rounds)


def _opaque(root: Path, count: int) -> None:
    with ExitStack() as stack:
        ours = [
            stack.enter_context(QuorateMembers(root, is_raw=True, transport=transport))
            for transport in (_NEW, _OLD)
        ]
        subjects: list[tuple[Subject, Sequence[Point]]] = [(RawSubject(each), RAW) for each in ours]
        if etcd_cluster.is_there():
            etcd = stack.enter_context(EtcdMembers(root))
            subjects.append((EtcdSubject(etcd), tuple(_CALLS.values())))
        else:
            print("etcd is left out: it is not in PATH\n", file=sys.stderr)
        results = rounds(count, subjects)
    new, old = (each.name for each in ours)
    title = f"Opaque records, h2 beside %s, {count} rounds"
    pairs = [(point, point) for point in RAW]
    print(render(title % "grpcio", "grpcio", _rows(results, new, old, pairs)))
    if len(subjects) > len(ours):
        aims = {ONE: 1.6, MANY: 1.5, MOST: 1.5}
        print(render(title % "etcd", "etcd", _rows(results, new, "etcd", _CALLS.items(), aims)))


def _metadata(root: Path, jars: Path, count: int) -> None:
    problem = kafka_cluster.problem(jars)
    with ExitStack() as stack:
        session = {"broker.session.timeout.ms": str(kafka_cluster.SESSION_MS)}
        ours = [
            QuorateMembers(root, overrides=session, transport=transport)
            for transport in (_NEW, _OLD)
        ]
        subjects: list[MetadataSubject | KafkaSubject]
        subjects = [MetadataSubject(stack.enter_context(each)) for each in ours]
        if problem is None:
            kafka = KafkaMembers(root, jars)
            for member in range(kafka.count):
                kafka.format(member)
            subjects.append(KafkaSubject(stack.enter_context(kafka)))
        else:
            print(f"stock Kafka is left out: {problem}\n", file=sys.stderr)
        for subject in subjects:
            subject.prepare()
        # Java is fast only after it has done the same for a while.
        rounds(1, [(subject, METADATA) for subject in subjects[len(ours) :]])
        results = rounds(count, [(subject, METADATA) for subject in subjects])
    new, old = (each.name for each in ours)
    title = f"Metadata, h2 beside %s, {count} rounds"
    pairs = [(point, point) for point in METADATA]
    print(render(title % "grpcio", "grpcio", _rows(results, new, old, pairs)))
    if problem is None:
        aims = {MANY: 5.0, MOST: 1.3, TOPICS: 3.0}
        rows = _rows(results, new, "kafka", pairs, aims, cpu_at_most=0.5)
        print(render(title % "stock Kafka", "Kafka", rows))


def _rows(
    results: Mapping[tuple[str, Point], list[Result]],
    ours: str,
    other: str,
    pairs: Iterable[tuple[Point, Point]],
    aims: Mapping[Point, float] | None = None,
    cpu_at_most: float | None = None,
) -> list[Row]:
    """For each point its p50 or its rate, and the CPU of a write; `aims` are of the first two."""
    rows: list[Row] = []
    aims = aims or {}
    for point, theirs in pairs:
        what = f"{'topics' if point.creates_topics else 'writes'}, {point.in_flight:,} in flight"
        mine, others = results[ours, point], results[other, theirs]
        aim = aims.get(point)
        if point.in_flight == 1:
            values = [r.p50_us for r in mine], [r.p50_us for r in others]
            rows.append(Row(f"{what}, p50", "us", *values, at_most=aim))
        else:
            rates = [r.per_s for r in mine], [r.per_s for r in others]
            rows.append(Row(what, "/s", *rates, at_least=aim))
        cpu = [r.cpu_us for r in mine], [r.cpu_us for r in others]
        at_most = cpu_at_most if point == MANY else None
        rows.append(Row(f"CPU, {what}", "us", *cpu, at_most=at_most))
    return rows
