"""Values that are null: a section has its defaults, an open place nothing, a number is missed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.chart.rendering import CHART, Helm, one
from tests.chart.test_values import SCHEMA, VALUES, notes, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECTIONS: Final = [key for key, shape in SCHEMA["properties"].items() if "properties" in shape]
# It may be left out permanently.
WITHOUT_NUMBER: Final = ("replicaCount",)


def default(path: tuple[str, ...]) -> Any:  # noqa: ANN401 - whatever YAML holds
    value: Any = VALUES
    for key in path:
        value = value[key]
    return value


def nested(paths: Iterator[tuple[str, ...]]) -> dict[str, Any]:
    """Null at each of these paths."""
    values: dict[str, Any] = {}
    for path in paths:
        inner = values
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = None
    return values


def file_of(folder: Path, values: dict[str, Any]) -> tuple[str, Path]:
    file = folder / "values.yaml"
    file.write_text(json.dumps(values))
    return "--values", file


def is_missed(path: tuple[str, ...]) -> bool:
    """A value whose absence no template could fill with sense."""
    value = default(path)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_told = value is True or (isinstance(value, str) and value != "")
    # Each decides about more than an object of its own.
    is_switch = path in (("tls", "enabled"), ("operator", "enabled"))
    is_list = path[-1] in ("accessModes", "apiServerPorts")
    return is_number or is_told or is_switch or is_list


# An issuer has three keys, and no default.
OURS: Final = {path[:3] for path in settings(SCHEMA)} - {("global",), ("enabled",), WITHOUT_NUMBER}


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_that_is_null_has_its_defaults(helm: Helm, tmp_path: Path, section: str) -> None:
    told = helm.render(*file_of(tmp_path, {section: None}))

    assert told == helm.render()


def test_sections_within_sections_too(helm: Helm, tmp_path: Path) -> None:
    inner = (
        (outer, key)
        for outer in SECTIONS
        for key, shape in SCHEMA["properties"][outer]["properties"].items()
        if "properties" in shape
    )

    assert helm.render(*file_of(tmp_path, nested(inner))) == helm.render()


@pytest.mark.parametrize("null", ["networkPolicy", "networkPolicy.egress"])
def test_a_policy_that_is_null_leaves_the_way_out_alone(helm: Helm, null: str) -> None:
    policy = one(helm.objects("--set", f"{null}=null"), "NetworkPolicy", "q-quorate")

    assert policy["spec"]["policyTypes"] == ["Ingress"]
    assert policy["spec"]["ingress"]


def test_the_notes_take_a_section_that_is_null(helm: Helm, tmp_path: Path) -> None:
    values = file_of(tmp_path, dict.fromkeys(SECTIONS))

    assert "helm --namespace default test q" in notes(helm, tmp_path, *values)


def test_every_template_begins_with_the_defaults() -> None:
    """Helm renders them in an order of its own."""
    for path in (*CHART.glob("templates/**/*.yaml"), CHART / "templates" / "NOTES.txt"):
        assert path.read_text().startswith('{{- include "quorate.complete" . -}}\n'), path


def test_open_places_that_are_null_are_empty(helm: Helm, tmp_path: Path) -> None:
    on = ("tls", "operator", "backup")
    values = nested(path for path in OURS if not is_missed(path))
    for section in on:
        values[section]["enabled"] = True
    values["pipeline"]["report"]["enabled"] = True
    values["metrics"] = {name: {"enabled": True} for name in ("podMonitor", "prometheusRule")}

    objects = helm.objects(*file_of(tmp_path, values))

    assert one(objects, "StatefulSet")["spec"]["replicas"] == 3
    assert one(objects, "Deployment")


def test_a_value_that_is_missed_is_named(helm: Helm, tmp_path: Path) -> None:
    missed = {path for path in OURS if is_missed(path)}

    said = helm.refusal(*file_of(tmp_path, nested(iter(missed))))

    found = set()
    for where, names in re.findall(r"at '(\S*)': missing \w+ (.*)", said):
        path = tuple(filter(None, where.split("/")))
        found |= {(*path, name) for name in re.findall(r"'(\w+)'", names)}
    assert found == missed
    assert ("quorum", "fetchTimeoutMs") in found


def umbrella(folder: Path, values: dict[str, Any]) -> Path:
    """A chart that depends on this one, on the condition `quorate.enabled`."""
    chart = folder / "umbrella"
    (chart / "charts").mkdir(parents=True)
    (chart / "charts" / "quorate").symlink_to(CHART)
    depends = {"name": "quorate", "version": "0.1.0", "condition": "quorate.enabled"}
    head = {"apiVersion": "v2", "name": "umbrella", "version": "1.0.0", "dependencies": [depends]}
    (chart / "Chart.yaml").write_text(json.dumps(head))
    (chart / "values.yaml").write_text(json.dumps(values))
    return chart


def test_a_chart_that_depends_on_this_one_switches_it(helm: Helm, tmp_path: Path) -> None:
    own = {"enabled": True, "clusterId": "MkU3OEVBNTcwNTJENDM2Qg", "backup": None}
    chart = umbrella(tmp_path, {"quorate": own})

    assert one(helm.objects(chart=chart), "StatefulSet")
    assert not helm.objects("--set", "quorate.enabled=false", chart=chart)


def test_switched_off_without_another_chart_is_a_mistake(helm: Helm) -> None:
    helm.render("--set", "enabled=true")

    assert "enabled is false, which counts only" in helm.refusal("--set", "enabled=false")


def test_what_is_global_counts_here(helm: Helm) -> None:
    words = (
        "global.imageRegistry=registry.example.com",
        "global.imagePullSecrets={one}",
        "global.imagePullSecrets[1].name=two",
        "image.pullSecrets={two,three}",
        "pipeline.report.enabled=true",
    )
    text = helm.render(*(word for each in words for word in ("--set", each)))
    pod = one(helm.objects(*(word for each in words for word in ("--set", each))), "StatefulSet")

    spec = pod["spec"]["template"]["spec"]
    names = [each["name"] for each in spec["imagePullSecrets"]]
    assert names == ["two", "three", "one"]
    images = re.findall(r"image: (\S+)", text)
    assert images
    assert {image.partition("/")[0] for image in images} == {"registry.example.com"}
    own = helm.render("--set", f"{words[0]},image.registry=own.example.com")
    assert "registry.example.com" not in own


@pytest.mark.parametrize("release", ["1q", "my.q"])
def test_a_release_whose_services_would_be_refused_is_refused(helm: Helm, release: str) -> None:
    assert "makes Services" in helm.refusal(release=release)
    assert helm.render("--set", "fullnameOverride=q", release=release)
