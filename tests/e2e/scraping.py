"""Reads the metrics of a release again and again, as Prometheus would, through the API server."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Self

from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.commands import CommandFailedError
from tests.promql import Samples

if TYPE_CHECKING:
    from types import TracebackType

    from tests.e2e.cluster import Release

EVERY_S: Final = 2.0
PORTS: Final = (9464, 9465)
Scrape = list[tuple[str, dict[str, str], float]]


class Scraping:
    """Use as a context manager. The rules are rendered without a cluster, for `default`."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow)
        self._lock = threading.Lock()
        self._scrapes: dict[tuple[str, int], list[tuple[float, Scrape]]] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        self._end.set()
        self._thread.join()

    def samples(self) -> Samples:
        """The present samples: the series of a target that does not answer have ended."""
        samples = Samples()
        with self._lock:
            for (pod, port), scrapes in sorted(self._scrapes.items()):
                target = {"namespace": "default", "pod": pod, "port": str(port)}
                for at_s, scrape in scrapes:
                    samples.scraped(at_s, target, scrape)
        return samples

    def _follow(self) -> None:
        while not self._end.wait(EVERY_S):
            try:
                targets = self._targets()
            except CommandFailedError:
                continue
            with self._lock:
                for gone in set(self._scrapes) - set(targets):
                    self._scrapes[gone].append((time.time(), []))
            for target in targets:
                self._scrape(*target)

    def _targets(self) -> list[tuple[str, int]]:
        release = self._release
        selector = f"app.kubernetes.io/instance={release.name}"
        found = release.cluster.get("pods", selector=selector)["items"]
        targets = []
        for pod in found:
            component = pod["metadata"]["labels"].get("app.kubernetes.io/component")
            ports = {"controller": PORTS, "operator": PORTS[:1]}.get(component, ())
            targets += [(pod["metadata"]["name"], port) for port in ports]
        return targets

    def _scrape(self, pod: str, port: int) -> None:
        at_s = time.time()
        try:
            text = self._release.cluster.metrics(pod, port)
        except CommandFailedError:
            text = ""
        # Without an answer all series of the target have ended; the earlier samples stay true.
        scrape = [
            (sample.name, dict(sample.labels), sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]
        with self._lock:
            self._scrapes.setdefault((pod, port), []).append((at_s, scrape))
