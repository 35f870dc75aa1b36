"""Traces as Jaeger's query API tells them."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.recorded_spans import operation_in

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWERS_WITHIN_S: Final = 30.0


@dataclass(frozen=True)
class Span:
    """One span; `tags` are its own, `process` those of its maker."""

    name: str
    service: str
    tags: Mapping[str, Any]
    process: Mapping[str, Any]
    events: tuple[str, ...]
    # How it refers to others: CHILD_OF, or FOLLOWS_FROM for a link.
    references: tuple[str, ...]

    @property
    def operation(self) -> str:
        return operation_in(self.tags, self.name)

    @property
    def pod(self) -> str:
        """The pod in which the span was made."""
        return str(self.process.get("k8s.pod.name", ""))


class Jaeger:
    """Jaeger's query API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def trace(self, trace_id: str) -> list[Span]:
        """The spans of a trace that have arrived, none where it is not known."""
        found = self._ask(f"/api/traces/{trace_id}")
        return [span for trace in found for span in spans_of(trace)]

    def traces(self, service: str, tags: Mapping[str, str]) -> list[list[Span]]:
        """The traces of the last two days with such a span."""
        query = {"service": service, "tags": json.dumps(tags), "limit": "200"}
        found = self._ask(f"/api/traces?{urllib.parse.urlencode(query)}")
        return [spans_of(trace) for trace in found]

    def _ask(self, path: str) -> list[dict[str, Any]]:
        try:
            with urllib.request.urlopen(self._url + path, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
                data: list[dict[str, Any]] = json.load(answer)["data"] or []
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return []
            raise
        return data


def spans_of(trace: Mapping[str, Any]) -> list[Span]:
    """As Jaeger has them in JSON."""
    processes = trace["processes"]
    return [
        Span(
            name=span["operationName"],
            service=processes[span["processID"]]["serviceName"],
            tags=values(span["tags"]),
            process=values(processes[span["processID"]]["tags"]),
            events=tuple(str(values(log["fields"]).get("event")) for log in span["logs"] or ()),
            references=tuple(each["refType"] for each in span["references"] or ()),
        )
        for span in trace["spans"]
    ]


def values(tags: list[dict[str, Any]]) -> dict[str, Any]:
    """By key."""
    return {tag["key"]: tag["value"] for tag in tags}
