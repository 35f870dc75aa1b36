"""Prometheus metrics of one process, on a port of their own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from quorate.telemetry.scrapes import ScrapeServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from prometheus_client.core import Metric

# How long a stop may wait for the thread to look; the library's own is half a second.
POLL_S: Final = 0.05


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
        self._server: ScrapeServer | None = None
        self._thread: threading.Thread | None = None

    def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the port is taken, RuntimeError for the lack of a thread."""
        server = ScrapeServer(host, port, make_wsgi_app(self._registry))
        thread = threading.Thread(
            target=server.serve_forever, args=(POLL_S,), name="metrics", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            server.server_close()
            raise
        self._server, self._thread = server, thread

    def stop(self) -> None:
        """Close the port and end the thread; the caller stands still for a moment."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
            self._server = None
