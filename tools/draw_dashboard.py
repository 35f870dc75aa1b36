"""Draws the chart's Grafana dashboard from the data of a Prometheus, without Grafana.

python -m tools.draw_dashboard --namespace default --name q-quorate --last 10m page.html
python -m tools.draw_dashboard --namespace default --name q-quorate --row "At a glance" page.html

writes one page with everything in it and prints its size, for a browser to make a picture of it.
The exit status is 1 when Prometheus cannot be asked or has nothing of this StatefulSet, and when a
panel asks for what is not drawn here. Annotations are not drawn.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from quorate.cli.argument_types import duration_s, number
from tools.panel_svg import Box, Series, Window, draw
from tools.panel_values import DrawingError, Panel

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parent.parent
DASHBOARD: Final = ROOT / "deploy" / "helm" / "quorate" / "files" / "dashboard.json"
ANSWER_TIMEOUT_S: Final = 10.0
# Grafana's grid: columns, and the height of a line and the space between two panels in pixels.
_COLUMNS: Final = 24
_LINE_PX: Final = 30
_SPACE_PX: Final = 8
_HEADER_PX: Final = 40
# By these the dashboard finds its namespaces and StatefulSets. Panels have no say in this: some
# of them show a value of what is absent.
_CONTROLLERS: Final = 'quorate_current_epoch{namespace="$namespace",pod=~"$name-[0-9]+"}'
_VARIABLE: Final = re.compile(r"\$(\w+)|\$\{(\w+)\}")


class Ask(Protocol):
    """Asks a path of Prometheus' API; the results of its answer. Raises DrawingError."""

    def __call__(self, path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus by its address."""

    address: str

    def __call__(self, path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        url = f"{self.address.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        if not url.startswith(("http://", "https://")):
            raise DrawingError(
                f"{self.address} is not the address of a Prometheus: it must be http://HOST:PORT"
            )
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT_S) as answer:  # noqa: S310
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            reason = error.read().decode(errors="replace")
            raise DrawingError(f"{self.address} refuses a query: {reason}") from error
        except OSError as error:
            raise DrawingError(f"{self.address} does not answer: {error}") from error
        except (ValueError, LookupError, TypeError) as error:
            raise DrawingError(f"{self.address} did not answer with a query's result") from error
        return found


def filled_in(text: str, variables: Mapping[str, str]) -> str:
    """A query with the variables of the dashboard replaced. Raises DrawingError."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name not in variables:
            raise DrawingError(f"variable ${name} has no value here")
        return variables[name]

    return _VARIABLE.sub(value, text)


def rows_of(dashboard: dict[str, Any], titles: Sequence[str]) -> list[Panel]:
    """The panels of these rows, or of all, moved up to the top. Raises DrawingError."""
    found: list[Panel] = []
    y, moved, is_shown = 0, 0, not titles
    for panel in dashboard["panels"]:
        if panel["type"] == "row" and titles:
            is_shown = panel["title"] in titles
            moved = panel["gridPos"]["y"] - y
        if is_shown:
            position = panel["gridPos"] | {"y": panel["gridPos"]["y"] - moved}
            y = max(y, position["y"] + position["h"])
            found.append(panel | {"gridPos": position})
    known = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
    for title in titles:
        if title not in known:
            raise DrawingError(f"no row is called {title}: {', '.join(known)}")
    return found


def series_of(ask: Ask, panel: Panel, window: Window, variables: Mapping[str, str]) -> list[Series]:
    """The results of a panel's queries, in their order."""
    found: list[Series] = []
    for target in panel.get("targets", ()):
        query = filled_in(target["expr"], variables)
        if target.get("instant"):
            results = ask("query", {"query": query, "time": f"{window.end_s:.3f}"})
        else:
            results = _over(ask, query, window)
        for result in results:
            points = result["values"] if "values" in result else [result["value"]]
            numbers = [(float(at_s), float(value)) for at_s, value in points]
            found.append(
                Series(
                    _legend(target["legendFormat"], result["metric"]),
                    tuple(each for each in numbers if math.isfinite(each[1])),
                )
            )
    return found


def _over(ask: Ask, query: str, window: Window) -> list[dict[str, Any]]:
    begin, end, step = (f"{each:.3f}" for each in (window.begin_s, window.end_s, window.step_s))
    return ask("query_range", {"query": query, "start": begin, "end": end, "step": step})


def _legend(pattern: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), pattern)


def page(
    ask: Ask, panels: Iterable[Panel], window: Window, variables: Mapping[str, str], width: int
) -> tuple[str, int]:
    """The whole page and its height in pixels. Raises DrawingError, also where nothing is found."""
    names = ", ".join(f"{name} {value}" for name, value in variables.items())
    begin, end = (
        datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for each in (window.begin_s, window.end_s)
    )
    if not _over(ask, filled_in(_CONTROLLERS, variables), window):
        raise DrawingError(f"no data: Prometheus has nothing of {names} from {begin} to {end}")
    column = (width - _SPACE_PX) / _COLUMNS
    drawn: list[str] = []
    height = 0
    for panel in panels:
        at = panel["gridPos"]
        top = _HEADER_PX + at["y"] * (_LINE_PX + _SPACE_PX)
        box = Box(
            _SPACE_PX + at["x"] * column,
            top,
            at["w"] * column - _SPACE_PX,
            at["h"] * (_LINE_PX + _SPACE_PX) - _SPACE_PX,
        )
        # One sample a pixel at most, and Grafana asks for no more than are scraped.
        step_s = max(window.step_s, (window.end_s - window.begin_s) / box.width)
        panel_window = Window(window.begin_s, window.end_s, step_s)
        found = series_of(ask, panel, panel_window, variables)
        drawn.append(draw(panel, found, panel_window, box))
        height = max(height, math.ceil(top + box.height + _SPACE_PX))
    title = escape(f"Quorate: {names}, {begin} to {end} UTC")
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{title}</title></head>'
        f'<body style="margin:0;background:#111217"><svg xmlns="http://www.w3.org/2000/svg"'
        f' width="{width}" height="{height}" style="display:block"'
        ' font-family="Inter, Helvetica, Arial, sans-serif">'
        f'<text x="12" y="26" font-size="16" fill="#ccccdc">{title}</text>'
        f"{''.join(drawn)}</svg></body></html>\n"
    ), height


def _time(text: str) -> float:
    """Unix seconds, or a time of ISO 8601, which is UTC where it says nothing else."""
    try:
        return float(text)
    except ValueError:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path, help="the HTML file to write")
    parser.add_argument("--prometheus", default="http://127.0.0.1:9090", metavar="URL")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--name", required=True, help="the StatefulSet")
    parser.add_argument("--row", action="append", default=[], metavar="TITLE", help="only this row")
    parser.add_argument(
        "--from", dest="begin_s", type=_time, metavar="TIME", help="default: --last before the end"
    )
    parser.add_argument("--to", dest="end_s", type=_time, metavar="TIME", help="default: now")
    parser.add_argument(
        "--last", type=duration_s, default=3600, metavar="DURATION", help="default: 1h"
    )
    parser.add_argument(
        "--interval", type=duration_s, default=15, help="least distance of samples (default: 15s)"
    )
    parser.add_argument("--width", type=number(400, 10_000), default=1400, help="pixels")
    return parser


def main(arguments: list[str] | None = None, *, dashboard: Path = DASHBOARD) -> int:
    """Write the page; the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    end_s = time.time() if given.end_s is None else given.end_s
    begin_s = end_s - given.last if given.begin_s is None else given.begin_s
    if begin_s >= end_s:
        parser.error("the time to draw has to end after it begins")
    variables = {"namespace": given.namespace, "name": given.name}
    try:
        panels = rows_of(json.loads(dashboard.read_text(encoding="utf-8")), given.row)
        window = Window(begin_s, end_s, given.interval)
        text, height = page(Prometheus(given.prometheus), panels, window, variables, given.width)
        given.page.write_text(text, encoding="utf-8")
    except (DrawingError, OSError) as error:
        print(f"draw_dashboard: {error}", file=sys.stderr)
        return 1
    print(f"{given.page}: {given.width},{height}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
