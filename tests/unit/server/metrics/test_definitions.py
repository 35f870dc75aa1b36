"""The documents name each metric of a controller, with the words that a scrape shows."""

from __future__ import annotations

import re
from pathlib import Path

from quorate.server.metrics.definitions import CONTROLLER_METERS

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "metrics.md"
ROW = re.compile(r"\| `quorate_(\w+)` \| (\w+)(?: by `(\w+)`)? \| (.*?) \|")


def documented() -> dict[str, tuple[str, str | None, str]]:
    text = DOCUMENT.read_text().partition("## Controllers")[2].partition("## Admin sidecars")[0]
    return {name: (kind, label, told) for name, kind, label, told in ROW.findall(text)}


def test_every_metric_is_documented_in_the_words_of_its_help() -> None:
    expected = {name: (meter.label or "", meter.text) for name, meter in CONTROLLER_METERS.items()}
    expected |= {
        meter.old: (meter.label or "", f"Now quorate_{name}")
        for name, meter in CONTROLLER_METERS.items()
        if meter.old is not None
    }
    assert {name: (label, told) for name, (_, label, told) in documented().items()} == expected


def test_counters_end_in_total_and_durations_in_their_unit() -> None:
    for name, (kind, _, _) in documented().items():
        assert (kind == "counter") == name.endswith("_total"), name
        if kind == "histogram":
            assert name.endswith("_seconds"), name


def test_a_quantity_that_has_a_unit_names_it() -> None:
    for name, meter in CONTROLLER_METERS.items():
        tells_time = re.search(r"\b(age|how long|when|duration|latency)\b", meter.text, re.I)
        if tells_time:
            assert name.endswith("_seconds"), name
        if re.search(r"\b(bytes|size of)\b", meter.text, re.I):
            assert name.endswith("_bytes"), name
