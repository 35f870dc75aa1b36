"""The rules and the dashboard as the chart renders them, and when a rule fires."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.chart.rendering import CHART, Helm, one
from tests.promql import Labels, Samples, evaluate, labels_of
from tools import draw_dashboard

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUES: Final = CHART / "ci" / "monitoring-values.yaml"
NAMESPACE: Final = "default"
STATEFUL_SET: Final = "q-quorate"
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}


def seconds(text: str) -> float:
    """A duration in seconds, as rules write it; an empty text is 0."""
    return float(sum(int(n) * _UNITS_S[unit] for n, unit in re.findall(r"(\d+)([smh])", text)))


@dataclass(frozen=True)
class Rule:
    """One alert."""

    name: str
    expression: str
    for_s: float
    labels: dict[str, str]
    annotations: dict[str, str]

    def firing(self, samples: Samples, at_s: float, every_s: float) -> set[Labels]:
        """For which labels it fires when it was looked at so often until then."""
        found: set[Labels] | None = None
        steps = math.ceil(self.for_s / every_s)
        for step in range(steps + 1):
            value = evaluate(self.expression, samples, at_s - step * every_s)
            assert isinstance(value, dict), f"{self.name} is no vector"
            found = set(value) if found is None else found & set(value)
            if not found:
                return set()
        assert found is not None
        return {
            labels_of(dict(labels) | self.labels | {"alertname": self.name}) for labels in found
        }


def rules_of(helm: Helm, *words: str) -> list[Rule]:
    """All rules."""
    spec = one(helm.objects("--values", VALUES, *words), "PrometheusRule")["spec"]
    return [
        Rule(
            each["alert"],
            each["expr"],
            seconds(each.get("for", "")),
            each["labels"],
            each["annotations"],
        )
        for each in spec["groups"][0]["rules"]
    ]


def dashboard_of(helm: Helm) -> dict[str, Any]:
    """The dashboard as Grafana reads it."""
    objects = helm.objects("--values", VALUES)
    text = one(objects, "ConfigMap", f"{STATEFUL_SET}-dashboard")["data"]["quorate.json"]
    dashboard: dict[str, Any] = json.loads(text)
    return dashboard


def queries_of(panels: Sequence[dict[str, Any]]) -> list[str]:
    """The queries of the panels to Prometheus, with Grafana's variables filled in."""
    queries = []
    for panel in panels:
        queries += queries_of(panel.get("panels", ()))
        queries += [filled_in(target["expr"]) for target in panel.get("targets", ())]
    return queries


def filled_in(expression: str) -> str:
    """An expression as Grafana sends it, with its variables replaced."""
    return draw_dashboard.filled_in(expression, {"namespace": NAMESPACE, "name": STATEFUL_SET})
