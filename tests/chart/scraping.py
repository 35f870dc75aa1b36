"""Scrapes of running processes, with the labels that a PodMonitor adds."""

from __future__ import annotations

import asyncio
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

from tests.chart.monitoring import NAMESPACE
from tests.ports import HOST

if TYPE_CHECKING:
    from prometheus_client import Metric

    from tests.promql import Samples

# For as long as a process of a busy machine may take.
SCRAPE_S = 30.0


async def scrape(port: int) -> list[Metric]:
    """The metrics of a process. Raises OSError when it does not answer."""
    url = f"http://{HOST}:{port}/metrics"

    def read() -> str:
        with urllib.request.urlopen(url, timeout=SCRAPE_S) as answer:
            text: str = answer.read().decode()
        return text

    return list(text_string_to_metric_families(await asyncio.to_thread(read)))


@dataclass(frozen=True)
class Target:
    """One port of one pod."""

    pod: str
    port: int

    async def look(self, samples: Samples, at_s: float) -> None:
        """Scrape once; of a target that does not answer nothing is left."""
        try:
            families = await scrape(self.port)
        except OSError:
            families = []
        labels = {"namespace": NAMESPACE, "pod": self.pod, "port": str(self.port)}
        every = [(one.name, one.labels, one.value) for each in families for one in each.samples]
        samples.scraped(at_s, labels, every)
