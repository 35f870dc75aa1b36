"""Values of the chart: every one is described, every wrong one is refused with words that help."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.chart.rendering import CASES, CHART, Helm, one

if TYPE_CHECKING:
    from pathlib import Path

VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())

GOOD = [
    "replicaCount=1",
    "clusterId=MkU3OEVBNTcwNTJENDM2Qg",
    "config.num\\.partitions=3",
    "persistence.size=1.5Ti",
    "persistence.movedFrom=prod/q-quorate",
    "tls.enabled=true,tls.existingSecret=own",
    "tls.enabled=true,tls.certManager.enabled=true,tls.certManager.issuerRef.name=ca",
    "backup.enabled=true,backup.ordinal=2",
    "pipeline.report.enabled=true,pipeline.report.arguments={--starting-offsets,snapshot}",
    "tls.enabled=true,pipeline.report.enabled=true,pipeline.report.existingSecret=reader",
    "global.imageRegistry=registry.example.com",
    "tracing.enabled=true,tracing.endpoint=https://collector.example.com:4317,tracing.fetchRatio=1",
]
BAD_SHAPE = [
    ("replicas=5", "at '': additional properties 'replicas' not allowed"),
    ("tls.enable=true", "at '/tls': additional properties 'enable' not allowed"),
    ("replicaCount=three", "at '/replicaCount': got string, want null or integer"),
    ("replicaCount=-1", "at '/replicaCount': minimum: got -1, want 0"),
    ("clusterId=short", "at '/clusterId': 'short' does not match pattern"),
    ("persistence.size=big", "at '/persistence/size': 'big' does not match pattern"),
    (
        "persistence.movedFrom=true",
        "at '/persistence/movedFrom': got boolean, want string",
    ),
    (
        "persistence.movedFrom=prod",
        "at '/persistence/movedFrom': 'prod' does not match pattern",
    ),
    (
        "persistence.retention.whenScaled=Keep",
        "at '/persistence/retention/whenScaled': value must be one of 'Delete', 'Retain'",
    ),
    ("tls.clientAuth=requested", "at '/tls/clientAuth': value must be one of 'required', 'none'"),
    ("log.format=text", "at '/log/format': value must be one of 'key-value', 'json'"),
    ("image.digest=sha256:12", "at '/image/digest': 'sha256:12' does not match pattern"),
    ("image.repository=", "at '/image/repository': minLength: got 0, want 1"),
    (
        "tracing.endpoint=collector:4317",
        "at '/tracing/endpoint': 'collector:4317' does not match pattern",
    ),
    ("tracing.servicePrefix=", "at '/tracing/servicePrefix': '' does not match pattern"),
    ("tracing.fetchRatio=2", "at '/tracing/fetchRatio': maximum: got 2, want 1"),
    ("tracing.fetchRatio=1.5", "at '/tracing/fetchRatio': '1.5' does not match pattern"),
    ("pipeline.report.keep=0", "at '/pipeline/report/keep': minimum: got 0, want 1"),
    (
        "pipeline.report.scratchSize=big",
        "at '/pipeline/report/scratchSize': 'big' does not match pattern",
    ),
    (
        "pipeline.report.arguments=--rows",
        "at '/pipeline/report/arguments': got string, want array",
    ),
    (
        "pipeline.report.existingSecret=A_b",
        "at '/pipeline/report/existingSecret': 'A_b' does not match pattern",
    ),
    ("config.a.b=1", "at '/config/a': got object, want boolean or number or string"),
]
BAD_SENSE = [
    (
        "replicaCount=0",
        "replicaCount is 0: a quorum needs at least one controller; choose 1, 3 or 5",
    ),
    (
        "tls.enabled=true,tls.existingSecret=own,tls.certManager.enabled=true"
        ",tls.certManager.issuerRef.name=ca",
        "tls.existingSecret and tls.certManager.enabled are both set: choose one source of"
        " certificates",
    ),
    (
        "tls.enabled=true,tls.certManager.enabled=true",
        "tls.certManager.enabled needs tls.certManager.issuerRef.name: name an Issuer or a"
        " ClusterIssuer",
    ),
    (
        "tls.existingSecret=own",
        "tls.enabled is false, but a source of certificates is given: set tls.enabled, or take the"
        " source away",
    ),
    (
        "backup.enabled=true,persistence.enabled=false",
        "backup.enabled needs persistence.enabled: there is no disk to take a backup from",
    ),
    (
        "persistence.enabled=false,persistence.movedFrom=prod/q",
        "persistence.movedFrom needs persistence.enabled: without it the pods keep no disks",
    ),
    (
        "persistence.movedFrom=default/q-quorate",
        "persistence.movedFrom is default/q-quorate, which is this StatefulSet itself: take it"
        " out, its disks need none",
    ),
    ("backup.enabled=true,backup.ordinal=3", "backup.ordinal is 3, but the controllers are 0 to 2"),
    (
        "metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true",
        "metrics.podMonitor.enabled and metrics.serviceMonitor.enabled are both set: every number"
        " would be counted twice, choose one",
    ),
    (
        "tracing.enabled=true",
        "tracing.enabled needs tracing.endpoint: name a collector of OTLP over gRPC, such as"
        " http://jaeger.observability.svc:4317",
    ),
    (
        "tracing.endpoint=http://jaeger:4317",
        "tracing.enabled is false, but tracing.endpoint is given: set tracing.enabled, or take the"
        " endpoint away",
    ),
    (
        "pipeline.report.enabled=true,pipeline.report.arguments={--html=/elsewhere}",
        "pipeline.report.arguments has --html, which is the chart's own: take it out",
    ),
    (
        "pipeline.report.arguments={--rows}",
        "pipeline.report.enabled is false, but pipeline.report.arguments are given: set"
        " pipeline.report.enabled, or take the arguments away",
    ),
    (
        "pipeline.report.enabled=true,pipeline.report.existingSecret=reader",
        "pipeline.report.existingSecret is given, which counts only with pipeline.report.enabled"
        " and tls.enabled: set both, or take the Secret away",
    ),
    ("config.node\\.id=7", "config has node.id, which is the chart's own: take it out"),
]


@pytest.mark.parametrize("values", GOOD)
def test_good_values_are_taken(helm: Helm, values: str) -> None:
    helm.render("--set", values)


@pytest.mark.parametrize(("values", "words"), BAD_SHAPE)
def test_a_wrong_shape_is_refused_by_the_schema(helm: Helm, values: str, words: str) -> None:
    assert words in helm.refusal("--set", values)


def levels(schema: dict[str, Any], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], bool]:
    """Every object whose keys are ours, and whether it takes others."""
    found = {path: schema.get("additionalProperties") is not False}
    for key, sub in schema["properties"].items():
        if "properties" in sub:
            found |= levels(sub, (*path, key))
    return found


def test_an_unknown_key_is_refused_at_every_level(helm: Helm, tmp_path: Path) -> None:
    assert not [path for path, takes_others in levels(SCHEMA).items() if takes_others]
    values: dict[str, Any] = {}
    for path in levels(SCHEMA):
        inner = values
        for key in path:
            inner = inner.setdefault(key, {})
        inner["unheardOf"] = 1
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))

    said = {line.strip() for line in helm.refusal("--values", file).splitlines()}

    for path in levels(SCHEMA):
        where = "".join(f"/{key}" for key in path)
        assert f"- at '{where}': additional properties 'unheardOf' not allowed" in said


@pytest.mark.parametrize(("values", "words"), BAD_SENSE)
def test_values_that_make_no_sense_are_refused(helm: Helm, values: str, words: str) -> None:
    assert words in helm.refusal("--set", values).splitlines()


def test_everything_that_makes_no_sense_is_told_at_once(helm: Helm) -> None:
    said = helm.refusal("--set", "replicaCount=0,tls.existingSecret=own")

    assert "replicaCount is 0" in said
    assert "tls.enabled is false" in said


@pytest.mark.parametrize(
    ("values", "warning"),
    [
        ("replicaCount=4", "WARNING: 4 controllers bear the loss of 1, as 3 would"),
        ("replicaCount=1", "WARNING: a single controller bears no loss"),
        ("persistence.enabled=false", "WARNING: persistence.enabled is false"),
        ("replicaCount=3", "WARNING: tls.enabled is false"),
        ("persistence.movedFrom=prod/q", "NOTE: persistence.movedFrom is prod/q: once all pods"),
    ],
)
def test_what_is_unwise_is_warned_about(
    helm: Helm, tmp_path: Path, values: str, warning: str
) -> None:
    text = notes(helm, tmp_path, "--set", values)

    assert warning in text
    assert "helm --namespace default test q" in text


def notes(helm: Helm, folder: Path, *words: str | Path) -> str:
    """The notes of an installation. Nothing else shows them, so they are made an object here."""
    chart = folder / "quorate"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "notes.yaml").write_text(
        '{{- define "notes" -}}' + text + "{{- end -}}\n"
        'kind: Notes\nmetadata: {name: notes}\ntext: {{ include "notes" . | toJson }}\n'
    )
    told: str = one(helm.objects(*words, chart=chart), "Notes")["text"]
    return told


@pytest.mark.parametrize("values", CASES, ids=lambda path: path.name.partition("-values")[0])
def test_the_notes_fit_what_was_installed(helm: Helm, tmp_path: Path, values: Path) -> None:
    text = notes(helm, tmp_path, "--values", values)
    told = yaml.safe_load(values.read_text())

    has_operator = told.get("operator", {}).get("enabled", True)
    # kubectl follows the rollout of no set whose pods an operator deletes.
    assert ("rollout status statefulset/" in text) is not has_operator
    assert ("-autojoin --timeout" in text) is has_operator
    assert ("events --for statefulset/" in text) is has_operator
    assert ("quorate/conditions" in text) is has_operator
    has_tls = told.get("tls", {}).get("enabled", False)
    assert ("--command-config /etc/quorate/config/client.properties" in text) is has_tls
    assert ("tls.enabled is false" in text) is not has_tls
    has_report = told.get("pipeline", {}).get("report", {}).get("enabled", False)
    assert ("cronjob/q-quorate-report" in text) is has_report
    assert ("quorate trace-id" in text) is told.get("tracing", {}).get("enabled", False)


def settings(schema: dict[str, Any], path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Every value that the schema knows."""
    if schema.get("additionalProperties") is not False:
        return {path}
    return {p for key, sub in schema["properties"].items() for p in settings(sub, (*path, key))}


def test_the_schema_and_the_values_name_the_same() -> None:
    for path in settings(SCHEMA) - {("global",), ("enabled",)}:
        value: Any = VALUES
        for key in path[:3]:
            assert key in value, f"{'.'.join(path)} is not in values.yaml"
            value = value[key]


def test_every_value_is_described() -> None:
    undescribed = set()
    path: list[str] = []
    is_described = False
    for line in (CHART / "values.yaml").read_text().splitlines():
        key = re.match(r"( *)([A-Za-z]+):", line)
        if key is not None:
            path = [*path[: len(key[1]) // 2], key[2]]
            if tuple(path) in settings(SCHEMA) and not is_described:
                undescribed.add(".".join(path))
        is_described = line.strip().startswith("#")
    assert not undescribed
