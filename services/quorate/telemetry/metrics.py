"""Prometheus metrics of one process and the server that exposes them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import (
    CollectorRegistry,
    ProcessCollector,
    disable_created_metrics,
    make_wsgi_app,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from quorate.records.value_types import value_type
from quorate.settings.port_checks import each_of
from quorate.telemetry import logs, tracing
from quorate.telemetry.histograms import Histogram
from quorate.telemetry.metrics_http import ScrapeServer, only_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.settings.port_checks import Hosts

# Seconds between two checks for a stop by the thread; the library's own is half a second.
POLL_S: Final = 0.05


# A number; a number for each value of the metric's own label; or a histogram of durations.
Value: TypeAlias = float | Mapping[str, float] | Histogram


@value_type
class MetricDefinition:
    """The help text of a metric, and its label besides those of its process.

    Its name in the previous release, `old`, is served for one more release.
    """

    text: str
    label: str | None = None
    old: str | None = None


# Definitions of `process_numbers`, which every process has.
PROCESS_METERS: Final[Mapping[str, MetricDefinition]] = {
    "log_lines_dropped_total": MetricDefinition(
        "Log lines dropped because their reader stood still"
    ),
    "spans_exported_total": MetricDefinition("Spans that the collector took"),
    "spans_dropped_total": MetricDefinition(
        "Spans that were given up, or that the collector rejected"
    ),
    "spans_queued": MetricDefinition("Spans that wait for the collector"),
}


class CallbackCollector:
    """Numbers that are read at each scrape, from another thread."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, Value]],
        labels: Mapping[str, str],
        meters: Mapping[str, MetricDefinition],
    ) -> None:
        """`read` returns values by names of `meters`; a name that ends in `_total` is a counter.

        A metric without a value in the result is absent from the scrape. So a metric that only a
        leader knows is absent on other replicas, rather than 0.
        """
        self._read = read
        self._labels = dict(labels)
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        """Read all metrics; prometheus_client calls this for each scrape."""
        for name, read in sorted(self._read().items()):
            meter = self._meters[name]
            yield self._family(f"quorate_{name}", meter, read)
            if meter.old is not None:
                renamed = MetricDefinition(f"Now quorate_{name}", meter.label)
                yield self._family(f"quorate_{meter.old}", renamed, read)

    def describe(self) -> Iterator[Metric]:
        """The names of all metrics, for a partial scrape; this reads no values.

        A definition does not tell a histogram from a gauge, so every metric except counters is
        described as a histogram, which has the names of both.
        """
        for name, meter in self._meters.items():
            for one in filter(None, (name, meter.old)):
                is_counter = one.endswith("_total")
                yield Metric(
                    f"quorate_{one.removesuffix('_total')}",
                    meter.text,
                    "counter" if is_counter else "histogram",
                )

    def _family(self, name: str, metric_definition: MetricDefinition, value: Value) -> Metric:
        names, values = list(self._labels), list(self._labels.values())
        if isinstance(value, Histogram):
            durations = HistogramMetricFamily(name, metric_definition.text, labels=names)
            durations.add_metric(values, [*value.buckets()], value.sum)
            return durations
        if metric_definition.label is not None:
            names.append(metric_definition.label)
        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
        family = kind(name, metric_definition.text, labels=names)
        if isinstance(value, Mapping):
            for key, one in value.items():
                family.add_metric([*values, key], one)
        else:
            family.add_metric(values, value)
        return family

    def registry(self) -> CollectorRegistry:
        """A registry with these numbers and those of the process."""
        registry = new_registry()
        registry.register(self)
        return registry


def process_numbers() -> dict[str, Value]:
    """Values for PROCESS_METERS."""
    return {**logs.numbers(), **tracing.numbers()}


def process_readings(labels: Mapping[str, str]) -> CallbackCollector:
    """The readings of every process, for a registry."""
    return CallbackCollector(process_numbers, labels, PROCESS_METERS)


def new_registry() -> CollectorRegistry:
    """A registry that reports this process's memory, processor time and descriptors."""
    # Otherwise each counter would have a metric with the time of its creation.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    # ProcessCollector has no `describe`: the registry learns its names by collecting it once.
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    return registry


class MetricsServer:
    """Serves the metrics of a registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        # One for each address.
        self._servers: list[tuple[ScrapeServer, threading.Thread]] = []

    def start(self, hosts: Hosts, port: int) -> None:
        """Listen on each address.

        Raises OSError if the port is taken, RuntimeError if no thread can be started; listeners
        that were started by then end with `stop`.
        """
        application = only_metrics(make_wsgi_app(self._registry))
        for host in each_of(hosts):
            beside = self._servers[0][0] if self._servers else None
            server = ScrapeServer(host, port, application, beside=beside)
            thread = threading.Thread(
                target=server.serve_forever, args=(POLL_S,), name="metrics", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:
                server.server_close()
                raise
            self._servers.append((server, thread))
            port = server.server_port

    def stop(self) -> None:
        """Close the port and end the threads; blocks the caller for a moment."""
        while self._servers:
            server, thread = self._servers.pop()
            server.shutdown()
            server.server_close()
            thread.join()
