"""Chart.yaml: where the chart comes from, as the rest of the repository has it."""

from __future__ import annotations

import tomllib
from typing import Any, Final

import yaml

from tests.chart.rendering import CHART, ROOT
from tests.chart.test_values import VALUES

HEAD: Final = yaml.safe_load((CHART / "Chart.yaml").read_text())


def test_home_and_sources_are_where_the_runbooks_are() -> None:
    runbooks = VALUES["metrics"]["prometheusRule"]["runbookUrl"]

    assert runbooks == f"{HEAD['home']}/blob/main/docs/runbooks"
    assert HEAD["sources"] == [HEAD["home"]]


def test_the_icon_is_a_file_of_this_repository() -> None:
    repository = HEAD["home"].partition("github.com/")[2]
    path = HEAD["icon"].partition(f"/{repository}/main/")[2]

    assert (ROOT / path).read_text().startswith("<svg ")


def annotation(name: str) -> Any:  # noqa: ANN401 - whatever YAML holds
    """The value of an annotation of Artifact Hub, whose lists are YAML in a string."""
    return yaml.safe_load(HEAD["annotations"][f"artifacthub.io/{name}"])


def test_artifact_hub_shows_the_images_that_the_chart_runs() -> None:
    repositories = [VALUES["image"]["repository"], VALUES["pipeline"]["image"]["repository"]]

    assert annotation("images") == [
        {"name": name, "image": f"{name}:{HEAD['appVersion']}"} for name in repositories
    ]


def test_artifact_hub_has_the_facts_of_the_repository() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert annotation("license") == project["license"]
    assert annotation("prerelease") is ("-" in HEAD["version"])
    assert annotation("crds") == []
    assert not any((CHART / "crds").glob("*"))
    assert all(isinstance(value, str) for value in HEAD["annotations"].values())


def test_artifact_hub_links_pages_of_the_repository() -> None:
    changes = annotation("changes")
    links = annotation("links") + [link for it in changes for link in it.get("links", [])]
    pages = [link["url"].partition("/blob/main/")[2] for link in links]

    assert all(link["url"].startswith(f"{HEAD['home']}/") for link in links)
    assert [page for page in pages if page and not (ROOT / page).is_file()] == []
    assert {it["kind"] for it in changes} <= {
        *("added", "changed", "deprecated", "removed", "fixed", "security")
    }
