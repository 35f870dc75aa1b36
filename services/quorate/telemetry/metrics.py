"""Prometheus metrics of one process, on a port of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.core import Metric


class Readings:
    """Numbers that are asked for when somebody scrapes, from another thread."""

    def __init__(self, read: Callable[[], Mapping[str, float]], labels: Mapping[str, str]) -> None:
        """`read` gives values by name; a name that ends in `_total` is a counter."""
        self._read = read
        self._labels = dict(labels)

    def collect(self) -> Iterator[Metric]:
        """What prometheus_client calls for each scrape."""
        for name, value in sorted(self._read().items()):
            is_counter = name.endswith("_total")
            kind = CounterMetricFamily if is_counter else GaugeMetricFamily
            words = name.removesuffix("_total").replace("_", " ")
            family = kind(f"quorate_{name}", words.capitalize(), labels=list(self._labels))
            family.add_metric(list(self._labels.values()), value)
            yield family

    def registry(self) -> CollectorRegistry:
        """A registry with these numbers and nothing else."""
        registry = CollectorRegistry()
        registry.register(self)
        return registry


class MetricsServer:
    """Serves what is in a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._server: tuple[object, object] | None = None

    def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the port is taken."""
        self._server = start_http_server(port, addr=host, registry=self._registry)

    def stop(self) -> None:
        """Close the port and end the thread."""
        if self._server is not None:
            server, thread = self._server
            server.shutdown()  # type: ignore[attr-defined]
            server.server_close()  # type: ignore[attr-defined]
            thread.join()  # type: ignore[attr-defined]
            self._server = None
