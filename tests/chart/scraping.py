"""Scrapes of running processes, with the labels that a PodMonitor adds."""

from __future__ import annotations

import asyncio
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from tests.chart.monitoring import NAMESPACE
from tests.ports import HOST
from tests.promql import labels_of

if TYPE_CHECKING:
    from prometheus_client import Metric

    from tests.promql import Labels, Samples

SCRAPE_S = 5.0


async def scrape(port: int) -> list[Metric]:
    """What a process tells. Raises OSError when it does not."""
    url = f"http://{HOST}:{port}/metrics"

    def read() -> str:
        with urllib.request.urlopen(url, timeout=SCRAPE_S) as answer:
            text: str = answer.read().decode()
        return text

    return list(text_string_to_metric_families(await asyncio.to_thread(read)))


@dataclass
class Target:
    """One port of one pod."""

    pod: str
    port: int
    _there: dict[tuple[str, Labels], None] = field(default_factory=dict)

    async def look(self, samples: Samples, at_s: float) -> None:
        """Scrape once. What was there before and is not any more has ended, as in Prometheus."""
        try:
            families = await scrape(self.port)
        except OSError:
            families = []
        there: dict[tuple[str, Labels], None] = {}
        for one in (sample for family in families for sample in family.samples):
            labels = {**one.labels, "namespace": NAMESPACE, "pod": self.pod}
            samples.add(at_s, one.name, labels, one.value)
            there[one.name, labels_of(labels)] = None
        for name, labels_before in self._there.keys() - there.keys():
            samples.add(at_s, name, dict(labels_before), None)
        self._there = there
