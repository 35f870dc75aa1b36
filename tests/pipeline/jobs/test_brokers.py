from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs.brokers import SCHEMAS, flapping, tables
from tests.pipeline.log_frames import (
    START_MS,
    STOCK,
    Log,
    clock_seed,
    frame,
    has_schema,
    read_directory,
    rows_as_dicts,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.pipeline.log_frames import Row

OPTIONS = {"flap_window_s": 60, "flap_count": 3}
Interval = dict[str, Any]


class Walk:
    """Goes through a log once, record by record, and keeps what it saw of each broker."""

    def __init__(self, rows: list[Row]) -> None:
        self.events: list[tuple[int, int, str]] = []
        self.sessions: list[Interval] = []
        self.fencing: list[Interval] = []
        self._state: dict[int, str] = {}
        self._session: dict[int, Interval] = {}
        self._fenced: dict[int, Interval] = {}
        self._stopping: dict[int, bool] = {}
        covered = [
            r.data["lastContainedLogTimestamp"] for r in rows if "Header" in (r.record_type or "")
        ]
        self.times = [covered[0] if row.from_snapshot else row.at_ms for row in rows]
        for row, at_ms in zip(rows, self.times, strict=True):
            self._take(row, at_ms)
        for interval in (*self.sessions, *self.fencing):
            start = min(self.times) if interval["start"] is None else interval["start"]
            end = max(self.times) if interval["end"] is None else interval["end"]
            interval["duration_ms"] = end - start
            interval["open"] = interval["end"] is None

    def _take(self, row: Row, at_ms: int) -> None:
        data = row.data
        broker: int = data["brokerId"] if "brokerId" in data else data.get("id", -1)
        match row.record_type:
            case "RegisterBrokerRecord":
                self.events.append((row.offset, broker, "registered"))
                self._end_session(broker, at_ms, "registered again")
                self._begin_session(row, broker, at_ms)
                self._stopping[broker] = bool(data.get("inControlledShutdown"))
                self._becomes(row, broker, "fenced" if data["fenced"] else "unfenced", at_ms)
            case "UnregisterBrokerRecord":
                self.events.append((row.offset, broker, "unregistered"))
                self._end_session(broker, at_ms, "unregistered")
                self._becomes(row, broker, "gone", at_ms)
            case "FenceBrokerRecord" | "UnfenceBrokerRecord" | "BrokerRegistrationChangeRecord":
                if data.get("inControlledShutdown") == 1:
                    self.events.append((row.offset, broker, "controlled shutdown"))
                    self._stopping[broker] = True
                    self._session[broker].setdefault("controlled_shutdown", at_ms)
                fenced = {"FenceBrokerRecord": 1, "UnfenceBrokerRecord": -1}.get(
                    row.record_type, data.get("fenced", 0)
                )
                if fenced:
                    word = "fenced" if fenced == 1 else "unfenced"
                    self.events.append((row.offset, broker, word))
                    session = self._session[broker]
                    if fenced == 1:
                        session["fence_count"] += 1
                    else:
                        session.setdefault("unfenced", at_ms)
                    self._becomes(row, broker, word, at_ms)

    def _begin_session(self, row: Row, broker: int, at_ms: int) -> None:
        self._session[broker] = {
            "broker_id": broker,
            "broker_epoch": row.data["brokerEpoch"],
            "start": None if row.from_snapshot else at_ms,
            "end": None,
            "ended_by": None,
            "fence_count": 0,
        }
        self.sessions.append(self._session[broker])

    def _end_session(self, broker: int, at_ms: int, reason: str) -> None:
        session = self._session.pop(broker, None)
        if session is not None:
            session |= {"end": at_ms, "ended_by": reason}

    def _becomes(self, row: Row, broker: int, state: str, at_ms: int) -> None:
        was = self._state.get(broker)
        self._state[broker] = state
        if was == state:
            return
        if broker in self._fenced:
            ended_by = "unfenced" if state == "unfenced" else "unregistered"
            self._fenced.pop(broker).update(end=at_ms, end_offset=row.offset, ended_by=ended_by)
        if state == "fenced":
            if row.record_type == "RegisterBrokerRecord":
                cause = "registered again" if was == "unfenced" else "registered"
            else:
                cause = "controlled shutdown" if self._stopping.get(broker) else "session ended"
            self._fenced[broker] = {
                "broker_id": broker,
                "cause": None if row.from_snapshot else cause,
                "start": None if row.from_snapshot else at_ms,
                "end": None,
                "end_offset": None,
                "ended_by": None,
            }
            self.fencing.append(self._fenced[broker])

    def flaps(self, window_ms: int, fence_count: int) -> list[tuple[int, int, int, int]]:
        """Episodes by looking at every window that ends with a fence."""
        found = []
        for broker in sorted({interval["broker_id"] for interval in self.fencing}):
            times = sorted(
                each["start"]
                for each in self.fencing
                if each["broker_id"] == broker and each["cause"] not in (None, "registered")
            )
            inside: dict[int, int] = {}
            for end in times:
                window = [at for at in times if end - window_ms <= at <= end]
                if len(window) >= fence_count:
                    for at in window:
                        inside[at] = max(inside.get(at, 0), len(window))
            episode: list[int] = []
            for at in [*(at for at in times if at in inside), None]:
                if episode and (at is None or at - episode[-1] > window_ms):
                    most = max(
                        sum(end - window_ms <= other <= end for other in times) for end in episode
                    )
                    found.append((broker, episode[0], episode[-1], len(episode), most))
                    episode = []
                if at is not None:
                    episode.append(at)
        return [(broker, start, end, count) for broker, start, end, count, _ in found]


def same(got: list[dict[str, Any]], expected: list[Interval]) -> None:
    """Each expected interval's fields, in the order of broker and time."""
    assert len(got) == len(expected)
    for row, interval in zip(got, expected, strict=True):
        assert {name: row[name] for name in interval} == interval


def check(spark: SparkSession, rows: list[Row]) -> Walk:
    """All tables against the walk."""
    walk = Walk(rows)
    got = {
        name: rows_as_dicts(table) for name, table in tables(frame(spark, rows), OPTIONS).items()
    }
    events = [(row["offset"], row["broker_id"], row["event"]) for row in got["events"]]
    assert events == sorted(walk.events)
    same(got["sessions"], sorted(walk.sessions, key=lambda s: (s["broker_id"], s["broker_epoch"])))
    same(got["fencing"], sorted(walk.fencing, key=lambda f: (f["broker_id"], f["start"] or 0)))
    flaps = [(f["broker_id"], f["start"], f["end"], f["fence_count"]) for f in got["flapping"]]
    assert flaps == walk.flaps(60_000, 3)
    return walk


def registration(broker: int, offset: int, *, fenced: bool) -> dict[str, Any]:
    """The data of a RegisterBrokerRecord."""
    return {
        "brokerId": broker,
        "incarnationId": f"i{offset}",
        "brokerEpoch": offset,
        "endPoints": [{"name": "P", "host": "h", "port": 9092, "securityProtocol": 0}],
        "features": [],
        "rack": "r",
        "fenced": fenced,
        "inControlledShutdown": False,
    }


def random_history(seed: int) -> list[Row]:
    """Brokers that come, are fenced and unfenced, stop, restart and go."""
    draw = random.Random(seed)
    log = Log(offset=draw.choice([0, 500]))
    epochs: dict[int, int] = {}
    if log.offset:
        epochs = {broker: 100 + broker for broker in (1, 2)}
        log.snapshot(
            [
                ("RegisterBrokerRecord", registration(broker, epoch, fenced=draw.random() < 0.5))
                for broker, epoch in epochs.items()
            ]
        )
    for _ in range(draw.randint(5, 90)):
        log.at_ms += draw.choice([1, 500, 9_000, 30_000, 70_000])
        broker = draw.randint(1, 4)
        if broker not in epochs or draw.random() < 0.2:
            epochs[broker] = log.offset
            log.add("RegisterBrokerRecord", registration(broker, log.offset, fenced=True))
            continue
        named = {"brokerId": broker, "brokerEpoch": epochs[broker]}
        old = {"id": broker, "epoch": epochs[broker]}
        match draw.randint(0, 11):
            case 0:
                log.add("UnregisterBrokerRecord", named)
                del epochs[broker]
            case 1:
                log.add("FenceBrokerRecord", old)
            case 2:
                log.add("UnfenceBrokerRecord", old)
            case 3:
                log.add("BrokerRegistrationChangeRecord", named | {"inControlledShutdown": 1})
            case 4:
                log.add("BrokerRegistrationChangeRecord", named | {"logDirs": ["x"]})
            case 5:
                log.add(
                    "BrokerRegistrationChangeRecord",
                    named | {"fenced": 1, "inControlledShutdown": 1},
                )
            case number:
                log.add(
                    "BrokerRegistrationChangeRecord", named | {"fenced": 1 if number % 2 else -1}
                )
    return log.rows


def test_random_histories_equal_a_walk_through_the_log(spark: SparkSession) -> None:
    seed = clock_seed()
    for history in range(seed, seed + 4):
        check(spark, random_history(history))


@pytest.mark.parametrize("directory", STOCK)
def test_stock_logs_equal_a_walk_through_them(
    spark: SparkSession, kafka_fixtures: Path, directory: str
) -> None:
    check(spark, read_directory(kafka_fixtures / directory))


def test_a_restart_is_one_fenced_time_over_two_sessions(spark: SparkSession) -> None:
    log = Log()
    log.add("RegisterBrokerRecord", registration(7, 0, fenced=True))
    for at_ms, data in (
        (100, {"fenced": -1}),
        (200, {"inControlledShutdown": 1}),
        (300, {"fenced": 1}),
    ):
        log.at_ms = START_MS + at_ms
        log.add("BrokerRegistrationChangeRecord", {"brokerId": 7, "brokerEpoch": 0, **data})
    log.at_ms = START_MS + 400
    log.add("RegisterBrokerRecord", registration(7, 4, fenced=True))
    log.at_ms = START_MS + 650
    log.add("BrokerRegistrationChangeRecord", {"brokerId": 7, "brokerEpoch": 4, "fenced": -1})
    walk = check(spark, log.rows)
    assert [(f["cause"], f["duration_ms"]) for f in walk.fencing] == [
        ("registered", 100),
        ("controlled shutdown", 350),
    ]
    assert [s["duration_ms"] for s in walk.sessions] == [400, 250]


def test_fences_far_apart_are_no_flapping(spark: SparkSession) -> None:
    log = Log()
    log.add("RegisterBrokerRecord", registration(7, 0, fenced=False))
    for wait_ms in (0, 30_000, 30_000, 61_000, 10, 10, 200_000):
        log.at_ms += wait_ms
        for fenced in (1, -1):
            log.add(
                "BrokerRegistrationChangeRecord",
                {"brokerId": 7, "brokerEpoch": 0, "fenced": fenced},
            )
    rows = rows_as_dicts(flapping(frame(spark, log.rows), window_ms=60_000, fence_count=3))
    told = sorted(
        (row["start"] - START_MS, row["end"] - START_MS, row["fence_count"]) for row in rows
    )
    assert told == [(0, 60_000, 3), (121_000, 121_020, 3)]


def test_the_schemas(spark: SparkSession) -> None:
    for name, table in tables(frame(spark, []), OPTIONS).items():
        assert has_schema(table, SCHEMAS[name])
