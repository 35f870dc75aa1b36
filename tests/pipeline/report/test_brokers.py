"""Brokers on the page against a walk through the log in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs import brokers
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.report.brokers import (
    TOTALS_SCHEMA,
    broker_totals,
    broker_verdicts,
    brokers_section,
)
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.shown import utc
from quorate.pipeline.report.text import duration
from tests.pipeline.log_frames import START_MS, Log, frame, has_schema, rows_as_dicts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.pipeline.log_frames import Row

FLAPPING = {option.name: option.default for option in JOBS["brokers"].options}
MINUTE_MS = 60_000


def registered(log: Log, broker: int) -> None:
    data = {"brokerId": broker, "brokerEpoch": log.offset, "fenced": True}
    log.add("RegisterBrokerRecord", {**data, "incarnationId": "i", "endPoints": [], "rack": None})


def changed(log: Log, broker: int, **said: int) -> None:
    log.add("BrokerRegistrationChangeRecord", {"brokerId": broker, "brokerEpoch": 0, **said})


def a_log() -> Log:
    """Broker 1 flaps, 2 restarts as it should, 3 crashes and comes back twice, 4 leaves fenced."""
    log = Log()
    for broker in (1, 2, 3, 4):
        registered(log, broker)
        log.at_ms += 1000
    for broker in (1, 2, 3):
        changed(log, broker, fenced=-1)
    for _ in range(3):
        log.at_ms += 5 * MINUTE_MS
        changed(log, 1, fenced=1)
        log.at_ms += MINUTE_MS
        changed(log, 1, fenced=-1)
    changed(log, 2, inControlledShutdown=1)
    log.at_ms += 2000
    changed(log, 2, fenced=1)
    log.at_ms += 30_000
    registered(log, 2)
    log.at_ms += 500
    changed(log, 2, fenced=-1)
    registered(log, 3)
    log.add("UnregisterBrokerRecord", {"brokerId": 4, "brokerEpoch": 3})
    log.at_ms += 7 * MINUTE_MS
    log.add("NoOpRecord", {})
    return log


def walk(rows: list[Row]) -> dict[int, dict[str, Any]]:
    """What the page has to say of each broker but for flaps, record by record."""
    found: dict[int, dict[str, Any]] = {}
    since: dict[int, int] = {}
    end_ms = max(row.at_ms for row in rows)

    def over(broker: int, at_ms: int) -> None:
        lasted = at_ms - since.pop(broker)
        found[broker]["fenced_ms"] += lasted
        found[broker]["longest_ms"] = max(found[broker]["longest_ms"], lasted)

    for row in rows:
        data = row.data
        if "brokerId" not in data:
            continue
        broker = data["brokerId"]
        names = ("registrations", "controlled_shutdowns", "fences", "fenced_ms", "longest_ms")
        one = found.setdefault(broker, dict.fromkeys(names, 0))
        one["controlled_shutdowns"] += data.get("inControlledShutdown", 0)
        is_registration = row.record_type == "RegisterBrokerRecord"
        was_there = one["registrations"] > 0
        one["registrations"] += is_registration
        if row.record_type == "UnregisterBrokerRecord" or data.get("fenced") == -1:
            if broker in since:
                over(broker, row.at_ms)
        elif data.get("fenced") and broker not in since:
            since[broker] = row.at_ms
            one["fences"] += was_there
        one["is_registered"] = row.record_type != "UnregisterBrokerRecord"
    for broker, one in found.items():
        one["is_fenced"] = broker in since
        if broker in since:
            over(broker, end_ms)
    return found


@pytest.fixture
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    """Those of the job."""
    return brokers.tables(frame(spark, a_log().rows), FLAPPING)


def test_totals_equal_a_walk(spark: SparkSession, tables: dict[str, DataFrame]) -> None:
    totals = broker_totals(tables)
    assert has_schema(totals, TOTALS_SCHEMA)
    flaps = {1: 1, 2: 0, 3: 0, 4: 0}
    expected = {
        broker: {**one, "broker_id": broker, "flaps": flaps[broker]}
        for broker, one in walk(a_log().rows).items()
    }
    assert {row["broker_id"]: row for row in rows_as_dicts(totals)} == expected
    assert expected[2]["fences"] == expected[3]["fences"] == 1
    assert broker_totals(brokers.tables(frame(spark, []), FLAPPING)).count() == 0


def test_the_section_tells_the_longest_first(tables: dict[str, DataFrame]) -> None:
    totals = broker_totals(tables)
    rows = a_log().rows
    span = Span(utc(START_MS), utc(rows[-1].at_ms))
    section = brokers_section(tables, totals, span, FLAPPING)
    assert f"3 times or more within {duration(3_600_000)}" in section.words
    by_broker, flaps, fencing = section.tables
    known = walk(rows)
    order = sorted(known, key=lambda broker: -known[broker]["fenced_ms"])
    assert [row[0] for row in by_broker.rows] == [str(broker) for broker in order]
    assert [row[5] for row in by_broker.rows] == [
        duration(known[broker]["fenced_ms"]) for broker in order
    ]
    assert {row[0]: row[7] for row in by_broker.rows} == {
        "1": "unfenced",
        "2": "unfenced",
        "3": "fenced",
        "4": "unregistered",
    }
    first = START_MS + 4000 + 5 * MINUTE_MS
    assert flaps.rows == (("1", utc(first), utc(first + 12 * MINUTE_MS), 3, 3),)
    assert fencing.row_count == 4 + 3 + 1 + 1
    assert [(row[0], row[3], row[4]) for row in fencing.rows[:2]] == [
        ("4", "registered", "unregistered"),
        ("3", "registered again", "not yet"),
    ]
    (timeline,) = section.plots
    assert [f"broker {broker}</span>" in timeline for broker in (1, 2, 3, 4, 5)] == [True] * 4 + [
        False
    ]
    # The three fences of broker 1 and the one of broker 3; a sample of the colour in the legend.
    assert timeline.count('class="bad"') == 3 + 1 + 1


def test_who_is_fenced_or_flapped_is_named(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    found = [(one.status, one.words) for one in broker_verdicts(broker_totals(tables))]
    assert found == [
        ("warning", "1 at the end of the log: 3"),
        ("warning", "1 in the whole log: 1"),
    ]
    many = [(broker, 9, True) for broker in range(20)]
    totals = spark.createDataFrame(many, "broker_id int, flaps bigint, is_fenced boolean")
    words = broker_verdicts(totals.selectExpr("*", "1 as fences"))[0].words
    assert words == "20 at the end of the log: 0, 1, 2, 3, 4, 5, 6, 7, ..."
    quiet = broker_verdicts(broker_totals(brokers.tables(frame(spark, []), FLAPPING)))
    assert [one.status for one in quiet] == ["ok", "ok"]
