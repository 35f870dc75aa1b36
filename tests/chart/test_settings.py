"""Settings of the processes that values name: as digits, a line each, none of the chart's own."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from quorate.server.timeouts import (
    ELECTION_TIMEOUT_MIN_MS,
    FETCH_TIMEOUT_MIN_MS,
    REQUEST_TIMEOUT_MIN_MS,
)
from quorate.settings.properties import parse_properties
from quorate.settings.tracing import ENDPOINT, FETCH_RATIO, SERVICE_PREFIX, WRITE_RATIO
from tests.chart.rendering import Helm, one
from tests.chart.test_values import SCHEMA, notes

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS: Final = ("config", "admin.config", "operator.config")
WRITTEN: Final = {
    8388608: "8388608",
    1_000_000: "1000000",
    9876543210: "9876543210",
    -5: "-5",
    0.25: "0.25",
    0.00001: "0.00001",
    0.0000001: "0.0000001",
    2.5e9: "2500000000",
    True: "true",
    "1e6": "1e6",
}


def written(folder: Path, section: str, settings: dict[str, Any]) -> tuple[str, Path]:
    """A values file with these settings in a section."""
    values: dict[str, Any] = {}
    inner = values
    *outer, last = section.split(".")
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = settings
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    return "--values", file


def read_by(section: str, objects: list[dict[str, Any]]) -> dict[str, str]:
    """The settings that the process of a section reads."""
    if section == "operator.config":
        pod = one(objects, "Deployment")["spec"]["template"]["spec"]
        return {each["name"]: each.get("value", "") for each in pod["containers"][0]["env"]}
    file = "admin.properties" if section == "admin.config" else "controller.properties"
    return parse_properties(one(objects, "ConfigMap", "q-quorate")["data"][file])


@pytest.mark.parametrize("section", SECTIONS)
def test_numbers_are_digits(helm: Helm, tmp_path: Path, section: str) -> None:
    settings = {f"x.{number}": value for number, value in enumerate(WRITTEN)}

    read = read_by(section, helm.objects(*written(tmp_path, section, settings)))

    prefix = "QUORATE_X_" if section == "operator.config" else "x."
    found = {value: read[f"{prefix}{number}"] for number, value in enumerate(WRITTEN)}
    assert found == WRITTEN


def test_every_number_of_the_chart_is_digits(helm: Helm, tmp_path: Path) -> None:
    big, small = 2_000_000, 0.00001
    values = {
        "quorum": {"fetchTimeoutMs": big},
        "terminationGracePeriodSeconds": big,
        "pipeline": {"report": {"enabled": True, "timeoutSeconds": big}},
        "tracing": {"enabled": True, "endpoint": "http://j:1", "fetchRatio": small},
    }
    file = tmp_path / "values.yaml"
    file.write_text(json.dumps(values))

    text = helm.render("--values", file)

    assert not re.search(r"\de[+-]0", text)
    # The operator gets the controllers' timeout of fetches, too.
    assert len(re.findall(rf"\b{big}\b", text)) == 4
    assert "'0.00001'" in text or '"0.00001"' in text


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"num.partitions": "3\n    node.id=7"},
            r'.num.partitions is "3\n    node.id=7", which has a line feed',
        ),
        ({"a": "x\ry"}, r'.a is "x\ry", which has a line feed'),
        ({"a": "x\u2028node.id=7"}, r'.a is "x\u2028node.id=7", which has a line feed'),
        ({"a": "x\x0cnode.id=7"}, r'.a is "x\fnode.id=7", which has a line feed'),
        ({"a": "x\\"}, r'.a is "x\\": a backslash at the end takes in the next line, take it out'),
        ({"a\nnode.id": 7}, r' has the key "a\nnode.id": a key has letters, digits,'),
        ({" node.id": 7}, ' has the key " node.id": a key has letters, digits,'),
        ({"node\\u002eid": 7}, r' has the key "node\\u002eid": a key has letters, digits,'),
        ({"a=b": 7}, ' has the key "a=b": a key has letters, digits,'),
        ({"#a": 7}, ' has the key "#a": a key has letters, digits,'),
        ({"a": 2**53}, ".a is a number above 9007199254740992, of which not every digit is kept"),
    ],
)
def test_one_setting_is_one_line(
    helm: Helm, tmp_path: Path, section: str, settings: dict[str, Any], words: str
) -> None:
    assert f"{section}{words}" in helm.refusal(*written(tmp_path, section, settings))


@pytest.mark.parametrize("section", SECTIONS)
def test_what_the_chart_writes_is_no_further_setting(
    helm: Helm, tmp_path: Path, section: str
) -> None:
    """Every line that is there without further settings; the last one of a key would count."""
    on = "tls.enabled=true,tls.existingSecret=own"
    own = read_by(section, helm.objects("--set", on))
    if section == "operator.config":
        own = {
            name.removeprefix("QUORATE_").lower().replace("_", "."): value
            for name, value in own.items()
            if name.startswith("QUORATE_")
        }
    said = helm.refusal(*written(tmp_path, section, dict.fromkeys(own, "x")))

    for key in own:
        assert f"{section} has {key}, which is the chart's own: " in said


@pytest.mark.parametrize("key", ["log_level", "LOG.LEVEL", "Security.Protocol"])
def test_another_spelling_of_a_variable_is_the_same_setting(
    helm: Helm, tmp_path: Path, key: str
) -> None:
    said = helm.refusal(*written(tmp_path, "operator.config", {key: "x"}))

    assert f"operator.config has {key}, which is the chart's own: set " in said


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize(
    ("key", "instead"),
    [
        (FETCH_RATIO, "tracing.fetchRatio"),
        (WRITE_RATIO, "tracing.writeRatio"),
        (ENDPOINT, "tracing.endpoint"),
        (SERVICE_PREFIX, "tracing.servicePrefix"),
    ],
)
def test_tracing_is_set_by_values_of_its_own(
    helm: Helm, tmp_path: Path, section: str, key: str, instead: str
) -> None:
    said = helm.refusal(*written(tmp_path, section, {key: "x"}))

    assert f"{section} has {key}, which is the chart's own: set {instead}" in said


def test_no_line_of_settings_is_blank(helm: Helm) -> None:
    for words in ((), ("--set", "config.a=1,admin.config.b=2")):
        for text in one(helm.objects(*words), "ConfigMap", "q-quorate")["data"].values():
            assert not re.search(r"[ \t]+$", text, re.MULTILINE)


@pytest.mark.parametrize(
    "values", ["clusterDomain=a\\,b", "nameOverride=A b", "fullnameOverride=1a", "clusterDomain=-a"]
)
def test_names_that_are_written_into_settings_have_a_shape(helm: Helm, values: str) -> None:
    assert "does not match pattern" in helm.refusal("--set", values)


def test_the_schema_has_the_least_timeouts_that_a_controller_takes() -> None:
    assert {
        name: shape["minimum"]
        for name, shape in SCHEMA["properties"]["quorum"]["properties"].items()
    } == {
        "electionTimeoutMs": ELECTION_TIMEOUT_MIN_MS,
        "fetchTimeoutMs": FETCH_TIMEOUT_MIN_MS,
        "requestTimeoutMs": REQUEST_TIMEOUT_MIN_MS,
    }


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        (
            "podDisruptionBudget.maxUnavailable=2",
            "maxUnavailable is 2: drains may take the majority of 3",
        ),
        ("replicaCount=5,podDisruptionBudget.maxUnavailable=2", ""),
        ("replicaCount=1", ""),
        ("podDisruptionBudget.enabled=false,podDisruptionBudget.maxUnavailable=2", ""),
        ("quorum.fetchTimeoutMs=100", "quorum.fetchTimeoutMs is 100: a slow flush"),
        (
            "quorum.electionTimeoutMs=60000",
            "quorum.electionTimeoutMs is 60000: when a leader is lost",
        ),
        ("quorum.fetchTimeoutMs=6000", ""),
        (
            "service.type=LoadBalancer",
            "service.type is LoadBalancer, which serves no clients outside",
        ),
        ("service.type=NodePort", "service.type is NodePort, which serves no clients outside"),
    ],
)
def test_what_lets_a_majority_go_is_warned_about(
    helm: Helm, tmp_path: Path, values: str, warning: str
) -> None:
    text = notes(helm, tmp_path, "--set", values)

    if warning:
        assert warning in text
    else:
        assert not [
            word for word in ("maxUnavailable", "TimeoutMs", "service.type") if word in text
        ]
