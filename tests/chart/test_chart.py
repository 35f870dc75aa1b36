"""Chart.yaml: where the chart comes from, as the rest of the repository has it."""

from __future__ import annotations

from typing import Final

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
