"""Brokers on the page against a walk through the log in plain Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from quorate.pipeline.jobs import brokers
from quorate.pipeline.jobs.registry import JOBS
from quorate.pipeline.report.broker_section import (
    BrokerIds,
    broker_ids,
    broker_verdicts,
    brokers_section,
)
from quorate.pipeline.report.commands import LogCommands
from quorate.pipeline.report.formatting import duration
from quorate.pipeline.report.plots import Span
from quorate.pipeline.report.top_rows import utc
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
    """The page's values of each broker except flaps, record by record."""
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
    totals = tables["totals"]
    assert has_schema(totals, brokers.SCHEMAS["totals"])
    flaps = {1: 1, 2: 0, 3: 0, 4: 0}
    expected = {
        broker: {**one, "broker_id": broker, "flaps": flaps[broker]}
        for broker, one in walk(a_log().rows).items()
    }
    assert {row["broker_id"]: row for row in rows_as_dicts(totals)} == expected
    assert expected[2]["fences"] == expected[3]["fences"] == 1
    assert brokers.tables(frame(spark, []), FLAPPING)["totals"].count() == 0


def test_the_section_tells_the_longest_first(tables: dict[str, DataFrame]) -> None:
    rows = a_log().rows
    span = Span(utc(START_MS), utc(rows[-1].at_ms))
    section = brokers_section(tables, span, FLAPPING, LogCommands())
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


def verdicts(tables: dict[str, DataFrame], end_ms: int) -> list[tuple[str, str]]:
    span = Span(utc(START_MS), utc(end_ms))
    ids = broker_ids(tables["totals"], is_whole=True)
    found = broker_verdicts(ids, tables["flapping"], span)
    assert {one.section for one in found} == {"Brokers"}
    return [(one.status, one.words) for one in found]


def test_brokers_that_are_fenced_or_flapped_are_named(tables: dict[str, DataFrame]) -> None:
    assert verdicts(tables, a_log().rows[-1].at_ms) == [
        ("warning", "1 at the end of the log: 3"),
        ("warning", "1 in the last day: 1; 1 in the whole log"),
    ]


def test_a_broker_that_flapped_is_no_warning_once_a_day_has_passed(
    tables: dict[str, DataFrame],
) -> None:
    _, flapped = verdicts(tables, a_log().rows[-1].at_ms + 1440 * MINUTE_MS)
    assert flapped == ("ok", "0 in the last day; 1 in the whole log")


def test_without_brokers_there_is_nothing_to_warn_of(spark: SparkSession) -> None:
    nothing = brokers.tables(frame(spark, []), FLAPPING)
    assert [status for status, _ in verdicts(nothing, START_MS)] == ["ok", "ok"]


def test_a_log_without_its_begin_knows_only_brokers_that_left_in_it(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    whole, part = (broker_ids(tables["totals"], is_whole=is_whole) for is_whole in (True, False))
    assert whole == BrokerIds((1, 2, 3), (3,), (4,), is_whole=True)
    replicas = spark.sql("select array(3, 4, 9) as replicas")
    assert [replicas.selectExpr(ids.gone_replicas).collect()[0][0] for ids in (whole, part)] == [
        [4, 9],
        [4],
    ]
    none = BrokerIds((), (), (), is_whole=False)
    assert replicas.selectExpr(none.gone_replicas).collect()[0][0] == []
