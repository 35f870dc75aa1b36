"""The dashboard is one that Grafana can draw, and its first row tells how the quorum is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from quorate.raft.metrics import STATES
from tests.chart.monitoring import dashboard_of, filled_in, queries_of, rules_of
from tests.chart.quorum_series import (
    END_S,
    Series,
    at,
    constant,
    controller,
    healthy,
    late,
    samples_of,
)
from tests.promql import evaluate, metric_names

if TYPE_CHECKING:
    from tests.chart.rendering import Helm

COLUMNS: Final = 24
CONFIG_MAP_BYTES_MAX: Final = 1 << 20
UNITS: Final = {
    *("none", "short", "ops", "s", "ms", "bytes", "percentunit", "dateTimeFromNow"),
}
QUESTIONS: Final = ("Whether", "What", "Which", "When", "Where", "How", "Who", "Why")
# Of Kafka's monitoring list: the threshold that each panel draws, and the metric that it is of.
KAFKA: Final = {
    "ActiveControllerCount": (1, "quorate_active_controller"),
    "LeaderElectionRateAndTimeMs": (1, "quorate_current_epoch"),
    "MetadataLogEndOffset": (None, "quorate_log_end_offset"),
    "MetadataLogLag": (1000, "quorate_metadata_log_lag"),
    "SnapshotGenerationTimeMs": (10_000, "quorate_snapshot_generation_duration_seconds_sum"),
    "MetadataErrorCount": (1, "quorate_metadata_errors_total"),
}
# Panels that draw the threshold of an alert.
OF_ALERTS: Final = {
    "Lag in time of each controller": ("QuorateControllerBehind", "60"),
    "From append to commit": ("QuorateCommitsSlow", "0.5"),
    "Flushes": ("QuorateDiskSlow", "0.5"),
    "Age of the oldest call to the disk": ("QuorateDiskHangs", "3"),
    "Free space": ("QuorateDiskFull", "268435456"),
    "Idle share of the event loop": ("QuorateEventLoopBusy", "0.1"),
}


@pytest.fixture(scope="module")
def dashboard(helm: Helm) -> dict[str, Any]:
    return dashboard_of(helm)


@pytest.fixture
def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that show something, without the rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def of_row(dashboard: dict[str, Any], title: str) -> list[dict[str, Any]]:
    """The panels of one row, in their order."""
    rows = [index for index, each in enumerate(dashboard["panels"]) if each["type"] == "row"]
    (begin,) = (index for index in rows if dashboard["panels"][index]["title"] == title)
    end = min((index for index in rows if index > begin), default=len(dashboard["panels"]))
    found: list[dict[str, Any]] = dashboard["panels"][begin + 1 : end]
    return found


def thresholds(panel: dict[str, Any]) -> list[tuple[float | None, str]]:
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", ())
    return [(step["value"], step["color"]) for step in steps]


def test_grafana_10_and_11_read_it(dashboard: dict[str, Any]) -> None:
    # A version that Grafana 10.0 knows and later versions need not migrate.
    assert 38 <= dashboard["schemaVersion"] <= 39
    assert dashboard["uid"]
    assert len(json.dumps(dashboard, indent=2)) < CONFIG_MAP_BYTES_MAX
    kinds = {panel["type"] for panel in dashboard["panels"]}
    assert kinds == {"row", "stat", "state-timeline", "timeseries"}


def test_panels_have_ids_and_titles_of_their_own(dashboard: dict[str, Any]) -> None:
    for name in ("id", "title"):
        found = [panel[name] for panel in dashboard["panels"]]
        assert len(set(found)) == len(found), name


def test_no_two_panels_overlap(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        x, y, w, h = (panel["gridPos"][name] for name in "xywh")
        assert min(w, h) > 0
        assert x >= 0
        assert x + w <= COLUMNS, panel["title"]
        cells = {(column, line) for column in range(x, x + w) for line in range(y, y + h)}
        assert not [taken[cell] for cell in cells & taken.keys()], panel["title"]
        taken |= dict.fromkeys(cells, panel["title"])
    # Panels belong to the row above them.
    above = [panel["gridPos"]["y"] for panel in dashboard["panels"]]
    assert above == sorted(above)


def test_each_panel_has_a_description_of_one_sentence(panels: list[dict[str, Any]]) -> None:
    for panel in panels:
        text = panel.get("description", "")
        assert re.fullmatch(r"[A-Z].*\w\.|[A-Z].*%\.", text), panel["title"]
        assert not re.search(r"[.!?] ", text), panel["title"]
        assert not text.startswith(QUESTIONS), panel["title"]


def test_each_panel_has_a_unit_and_asks_the_chosen_source(panels: list[dict[str, Any]]) -> None:
    for panel in panels:
        config = panel["fieldConfig"]
        units = [config["defaults"].get("unit")]
        units += [
            each["value"]
            for override in config["overrides"]
            for each in override["properties"]
            if each["id"] == "unit"
        ]
        assert set(units) <= UNITS, panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        assert letters, panel["title"]


def test_two_units_in_one_panel_have_two_axes(panels: list[dict[str, Any]]) -> None:
    for panel in panels:
        for override in panel["fieldConfig"]["overrides"]:
            pattern = re.compile(override["matcher"]["options"])
            legends = [target["legendFormat"] for target in panel["targets"]]
            matched = [legend for legend in legends if pattern.fullmatch(legend)]
            assert 0 < len(matched) < len(legends), panel["title"]
            sides = [
                each for each in override["properties"] if each["id"] == "custom.axisPlacement"
            ]
            assert [each["value"] for each in sides] == ["right"], panel["title"]


def test_thresholds_rise_from_a_base(panels: list[dict[str, Any]]) -> None:
    for panel in panels:
        steps = thresholds(panel)
        values = [value for value, _ in steps[1:] if value is not None]
        if steps:
            assert steps[0][0] is None, panel["title"]
            assert len(values) == len(steps) - 1, panel["title"]
            assert values == sorted(set(values)), panel["title"]
        if panel["type"] == "timeseries":
            style = panel["fieldConfig"]["defaults"].get("custom", {}).get("thresholdsStyle")
            assert bool(steps) == (style is not None), panel["title"]


def test_the_first_row_is_read_at_a_glance(dashboard: dict[str, Any]) -> None:
    glance = of_row(dashboard, "At a glance")
    assert [panel["title"] for panel in glance if panel["type"] == "stat"] == [
        *("Leader", "Active controllers", "Epoch"),
        *("Live voters", "Voters that may still fail", "Ready"),
        *("Last election", "Elections within an hour", "Lag", "Lag in time"),
        *("Snapshot", "Metadata errors", "Log end offset"),
    ]
    assert [panel["title"] for panel in glance if panel["type"] == "state-timeline"] == [
        *("Roles", "Readiness"),
    ]
    assert dashboard["panels"][0]["title"] == "At a glance"
    # All that tells good from bad is red at one end of its thresholds.
    plain = {"Epoch", "Last election", "Log end offset"}
    for panel in glance:
        if panel["type"] == "stat" and panel["title"] not in plain:
            colors = [color for _, color in thresholds(panel)]
            assert {"red", "green"} <= set(colors), panel["title"]


def test_states_are_drawn_by_their_mappings(panels: list[dict[str, Any]]) -> None:
    # With colours from thresholds Grafana merges what lies between two thresholds, and shows these
    # instead of the mapping: https://github.com/grafana/grafana/issues/71804
    for panel in panels:
        if panel["type"] == "state-timeline":
            assert panel["fieldConfig"]["defaults"]["color"]["mode"] == "fixed", panel["title"]
            assert panel["fieldConfig"]["defaults"]["mappings"], panel["title"]
            assert not thresholds(panel), panel["title"]


def states(panels: list[dict[str, Any]], title: str, series: Series) -> dict[str, str]:
    """The text of each pod in a state timeline."""
    (panel,) = (panel for panel in panels if panel["title"] == title)
    (mapping,) = panel["fieldConfig"]["defaults"]["mappings"]
    (expression,) = queries_of([panel])
    value = evaluate(expression, samples_of(series), END_S)
    assert isinstance(value, dict)
    return {
        dict(labels)["pod"]: mapping["options"][f"{number:.0f}"]["text"]
        for labels, number in value.items()
    }


def test_every_role_has_a_name_and_a_colour(panels: list[dict[str, Any]]) -> None:
    (roles,) = (panel for panel in panels if panel["title"] == "Roles")
    (mapping,) = roles["fieldConfig"]["defaults"]["mappings"]
    texts = [each["text"] for each in mapping["options"].values()]
    assert sorted(texts) == sorted([*STATES, "down"])
    assert len({each["color"] for each in mapping["options"].values()}) == len(texts)
    for state in STATES:
        series = scraped(0, 1) | scraped(1, 1) | scraped(2, 0)
        for pod in range(2):
            for each in STATES:
                is_it = each == (state if pod == 1 else "follower")
                series |= at(pod, "current_state", constant(is_it), state=each)
        told = states(panels, "Roles", series)
        assert told == {"q-quorate-0": "follower", "q-quorate-1": state, "q-quorate-2": "down"}


def scraped(pod: int, is_up: int) -> Series:
    """The series in which Prometheus reports its scrapes of a controller."""
    return {("up", controller(pod, container="controller")): constant(is_up)}


def test_a_controller_that_cannot_be_scraped_is_not_ready(panels: list[dict[str, Any]]) -> None:
    series = at(0, "is_ready", constant(1)) | at(1, "is_ready", constant(0)) | scraped(2, 0)
    told = states(panels, "Readiness", series | scraped(0, 1) | scraped(1, 1))
    assert told == {
        "q-quorate-0": "ready",
        "q-quorate-1": "not ready",
        "q-quorate-2": "not ready",
    }


@pytest.mark.parametrize("title", KAFKA)
def test_kafkas_numbers_are_drawn_with_their_thresholds(
    dashboard: dict[str, Any], title: str
) -> None:
    row = of_row(dashboard, "Kafka's numbers, with their thresholds")
    assert [panel["title"] for panel in row] == list(KAFKA)
    (panel,) = (panel for panel in row if panel["title"] == title)
    threshold, metric = KAFKA[title]
    assert metric in metric_names(queries_of([panel])[0])
    values = [value for value, _ in thresholds(panel) if value is not None]
    assert values[:1] == ([] if threshold is None else [threshold])
    # Grafana extends no axis for a threshold.
    if threshold is not None:
        assert panel["fieldConfig"]["defaults"]["custom"]["axisSoftMax"] > threshold


@pytest.mark.parametrize("title", OF_ALERTS)
def test_a_threshold_of_an_alert_is_drawn_where_it_is(
    helm: Helm, dashboard: dict[str, Any], title: str
) -> None:
    name, threshold = OF_ALERTS[title]
    (rule,) = (rule for rule in rules_of(helm) if rule.name == name)
    (panel,) = (panel for panel in dashboard["panels"] if panel["title"] == title)
    assert re.search(rf"[<>] {re.escape(threshold)}$", rule.expression)
    assert float(threshold) in [value for value, _ in thresholds(panel)]


def test_membership_has_a_row(dashboard: dict[str, Any]) -> None:
    asked = set[str]().union(*map(metric_names, queries_of(of_row(dashboard, "Membership"))))
    assert asked >= {
        "quorate_is_voter",
        "quorate_pending_voter_changes",
        "quorate_ignored_static_voters",
        "quorate_number_of_voters",
        "quorate_current_leader",
    }


def test_the_dashboard_asks_what_prometheus_understands(panels: list[dict[str, Any]]) -> None:
    queries = queries_of(panels)
    assert len(queries) > 20
    for query in queries:
        assert metric_names(query), query


def shown(panels: list[dict[str, Any]], title: str, otherwise: Series) -> dict[str, str]:
    """The values of a stat by their legends, and the colours in which they are drawn."""
    (panel,) = (panel for panel in panels if panel["title"] == title)
    found: dict[str, str] = {}
    for target in panel["targets"]:
        # The last value of a range may be that of a controller that is down.
        assert target["instant"]
        value = evaluate(filled_in(target["expr"]), samples_of(healthy() | otherwise), END_S)
        assert isinstance(value, dict)
        for labels, number in value.items():
            legend = str(target["legendFormat"])
            for label, had in labels:
                legend = legend.replace("{{" + label + "}}", had)
            steps = thresholds(panel)
            reached = [color for least, color in steps if least is None or number >= least]
            found[legend] = f"{number:.4g} {reached[-1]}"
    return found


@pytest.mark.parametrize(
    ("title", "otherwise", "expected"),
    [
        ("Leader", {}, {"q-quorate-0": "1 green"}),
        ("Leader", at(0, "active_controller", late(0)), {"no leader": "0 red"}),
        ("Active controllers", {}, {"active": "1 green"}),
        ("Active controllers", at(1, "active_controller", late(1)), {"active": "2 red"}),
        ("Active controllers", at(0, "active_controller", late(0)), {"active": "0 red"}),
        ("Epoch", {}, {"epoch": "4 blue"}),
        ("Live voters", {}, {"live": "1 green"}),
        ("Live voters", at(0, "number_of_offline_voters", late(1)), {"live": "0.6667 orange"}),
        ("Live voters", at(0, "number_of_offline_voters", late(2)), {"live": "0.3333 red"}),
        ("Voters that may still fail", {}, {"may fail": "1 green"}),
        (
            "Voters that may still fail",
            at(0, "number_of_offline_voters", late(1)),
            {"may fail": "0 orange"},
        ),
        (
            "Voters that may still fail",
            at(0, "number_of_offline_voters", late(2)),
            {"may fail": "-1 red"},
        ),
        (
            "Voters that may still fail",
            at(0, "number_of_voters", constant(5)),
            {"may fail": "2 green"},
        ),
        ("Ready", {}, {"ready": "1 green"}),
        ("Ready", at(2, "is_ready", late(0)), {"ready": "0.6667 orange"}),
        ("Ready", at(0, "number_of_voters", constant(4)), {"ready": "0.75 orange"}),
        ("Ready", at(3, "is_ready", constant(1)), {"ready": "1 green"}),
        ("Last election", {}, {"startup": "6e+05 blue"}),
        (
            "Last election",
            at(1, "last_election_won_timestamp_seconds", constant(900), cause="fetch_timeout"),
            {"fetch_timeout": "9e+05 blue"},
        ),
        ("Elections within an hour", {}, {"elections": "0 green"}),
        (
            "Elections within an hour",
            at(0, "current_epoch", late(5, 4)),
            {"elections": "1 green"},
        ),
        (
            "Elections within an hour",
            at(0, "current_epoch", lambda t: 4 + t // 1800),
            {"elections": "2 orange"},
        ),
        ("Lag", {}, {"records": "0 green"}),
        ("Lag", at(2, "metadata_log_lag", late(1800)), {"records": "1800 red"}),
        ("Lag in time", {}, {"time": "0 green"}),
        (
            "Lag in time",
            at(2, "last_applied_record_lag_seconds", late(1800)),
            {"time": "1800 red"},
        ),
        ("Snapshot", {}, {"snapshot": "2000 green"}),
        (
            "Snapshot",
            at(2, "snapshot_generation_duration_seconds_sum", lambda t: t * 12 / 1200),
            {"snapshot": "1.2e+04 red"},
        ),
        ("Metadata errors", {}, {"errors": "0 green"}),
        ("Log end offset", {}, {"offset": f"{10 * END_S:.4g} blue"}),
    ],
)
def test_a_stat_tells_how_the_quorum_is(
    panels: list[dict[str, Any]], title: str, otherwise: Series, expected: dict[str, str]
) -> None:
    assert shown(panels, title, otherwise) == expected


def test_an_error_colours_its_stat(panels: list[dict[str, Any]]) -> None:
    told = shown(panels, "Metadata errors", at(0, "metadata_errors_total", late(1)))
    assert told["errors"].endswith(" red")


def test_what_is_missing_is_not_green(panels: list[dict[str, Any]]) -> None:
    for panel in panels:
        # No snapshot within three hours is usual.
        if panel["type"] == "stat" and panel["title"] != "Snapshot":
            (_, color), *_ = thresholds(panel)
            for mapping in panel["fieldConfig"]["defaults"].get("mappings", ()):
                assert mapping["options"]["match"] == "null"
                color = mapping["options"]["result"]["color"]
            assert color in {"red", "blue"}, panel["title"]
