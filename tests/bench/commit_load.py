"""Commits under load: latency, rate and CPU, in rounds that change from system to system.

One round measures every system at every point, one right after the other, so that a ratio compares
what ran on the same machine in the same minute.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc

from tests.bench import payloads
from tests.bench.gen.raw.v1 import raw_pb2, raw_pb2_grpc
from tests.bench.http2_client import Connection, Load, StreamLoad, UnaryLoad

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.bench.etcd_cluster import EtcdMembers
    from tests.bench.processes import Members
    from tests.bench.quorate_cluster import QuorateMembers

WARM_S: Final = 0.4
ROUND_S: Final = 1.5
# One connection carries what a member can take; more only help against a server with many threads.
_CALLS_PER_CONNECTION: Final = 256


@dataclass(frozen=True, slots=True)
class Point:
    """A load: calls in flight, records in each of them."""

    in_flight: int
    records: int = 1
    is_stream: bool = True
    is_inside: bool = False
    creates_topics: bool = False

    @property
    def log_records(self) -> int:
        """Records that one call leaves in the log: a topic is one, and so is its partition."""
        return 2 if self.creates_topics else self.records

    def __str__(self) -> str:
        if self.creates_topics:
            return f"{self.in_flight} in flight, topics created"
        how = "in process" if self.is_inside else "stream" if self.is_stream else "calls"
        batch = f" x {self.records}" if self.records > 1 else ""
        return f"{self.in_flight} in flight{batch}, {how}"


@dataclass(frozen=True, slots=True)
class Result:
    """One round of one system at one point."""

    p50_us: float
    p99_us: float
    per_s: float
    cpu_us: float
    generator_share: float = 0.0


def percentile(ordered: Sequence[int], share: float) -> float:
    return float(ordered[min(len(ordered) - 1, int(len(ordered) * share))])


class Subject(ABC):
    """A system that commits; its members run."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.name = members.name

    @abstractmethod
    def open(self, point: Point, leader: int) -> Load:
        """Begin the load at the leader."""

    def committed(self, leader: int) -> int | None:
        """A count that each record which is committed raises by one; None where there is none."""
        del leader
        return None

    def measure(self, point: Point) -> Result:
        """One round. Raises ValueError when more was answered than committed, or less."""
        leader = self.members.leader()
        before = self.committed(leader)
        load = self.open(point, leader)
        load.run(WARM_S)
        cpu, generator = self.members.cpu_s(), time.process_time()
        elapsed_s = load.run(ROUND_S)
        generator = time.process_time() - generator
        cpu = self.members.cpu_s() - cpu
        latencies = sorted(load.latencies_ns)
        records = len(latencies) * point.records
        load.finish()
        after = self.committed(leader)
        if before is not None and after is not None:
            growth, due = after - before, load.answered * point.log_records
            if growth != due:
                raise ValueError(f"{self.name}: {growth} records committed, {due} acknowledged")
        return Result(
            percentile(latencies, 0.5) / 1000,
            percentile(latencies, 0.99) / 1000,
            records / elapsed_s,
            cpu * 1e6 / records,
            generator / elapsed_s,
        )


def connect(members: Members, leader: int, in_flight: int) -> list[Connection]:
    """As many connections as that many calls want."""
    host, port = members.address(leader)
    return [Connection(host, port) for _ in range(1 + (in_flight - 1) // _CALLS_PER_CONNECTION)]


class EtcdSubject(Subject):
    """Puts of a hundred bytes."""

    members: EtcdMembers

    def open(self, point: Point, leader: int) -> Load:
        connections = connect(self.members, leader, point.in_flight)
        return UnaryLoad(connections, payloads.PUT_PATH, payloads.puts(), point.in_flight)

    def committed(self, leader: int) -> int:
        return self.members.revision(leader)


class RawSubject(Subject):
    """Opaque records of a hundred bytes."""

    members: QuorateMembers

    def _stub(self, leader: int) -> raw_pb2_grpc.RawLogStub:
        host, port = self.members.address(leader)
        return raw_pb2_grpc.RawLogStub(grpc.insecure_channel(f"{host}:{port}"))

    def open(self, point: Point, leader: int) -> Load:
        if point.is_stream:
            return StreamLoad(
                connect(self.members, leader, 1),
                payloads.APPEND_PATH,
                payloads.appends(point.records),
                payloads.last_append,
                point.in_flight,
            )
        return UnaryLoad(
            connect(self.members, leader, point.in_flight),
            payloads.APPEND_ONCE_PATH,
            payloads.append_once(point.records),
            point.in_flight,
        )

    def committed(self, leader: int) -> int:
        """The high watermark after one more record, less those of earlier looks."""
        self._looks = getattr(self, "_looks", 0) + 1
        request = raw_pb2.AppendRequest(records=[b"how far"])
        return self._stub(leader).AppendOnce(request).high_watermark - self._looks

    def measure(self, point: Point) -> Result:
        return self._measure_inside(point) if point.is_inside else super().measure(point)

    def _measure_inside(self, point: Point) -> Result:
        stub = self._stub(self.members.leader())
        request = raw_pb2.RunLoadRequest(
            in_flight=point.in_flight,
            record_bytes=payloads.VALUE_BYTES,
            duration_ms=int(ROUND_S * 1000),
        )
        cpu = self.members.cpu_s()
        answer = stub.RunLoad(request)
        cpu = self.members.cpu_s() - cpu
        latencies = list(answer.latencies_us)
        return Result(
            percentile(latencies, 0.5),
            percentile(latencies, 0.99),
            answer.appends * 1e6 / answer.elapsed_us,
            cpu * 1e6 / answer.appends,
        )


def rounds(
    count: int, subjects: Sequence[tuple[Subject, Iterable[Point]]]
) -> Mapping[tuple[str, Point], list[Result]]:
    """All results by system and point, one for each round."""
    results: dict[tuple[str, Point], list[Result]] = {}
    for _ in range(count):
        for subject, points in subjects:
            for point in points:
                results.setdefault((subject.name, point), []).append(subject.measure(point))
    return results
