"""The dashboard of the chart is drawn from what Prometheus answers."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tools import draw_dashboard
from tools.draw_dashboard import DASHBOARD, filled_in, page, rows_of, series_of
from tools.panel_svg import Window
from tools.panel_values import DrawingError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tools.panel_values import Panel

WINDOW = Window(1000, 1100, 10)
VARIABLES = {"namespace": "default", "name": "q-quorate"}
ARGUMENTS = ["--namespace", "default", "--name", "q-quorate", "--from", "1000", "--to", "1100"]
LABELS = {"pod": "q-quorate-0", "cause": "startup"}


def answer(path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    """One series for every query."""
    if path == "query":
        return [{"metric": LABELS, "value": [float(parameters["time"]), "1"]}]
    times = range(int(float(parameters["start"])), int(float(parameters["end"])), 10)
    return [{"metric": LABELS, "values": [[at_s, "1"] for at_s in times]}]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def target(**more: object) -> Panel:
    return {"targets": [{"expr": 'm{pod=~"$name-[0-9]+"}', "legendFormat": "{{pod}} p99", **more}]}


def test_the_whole_dashboard_is_drawn() -> None:
    text, height = page(answer, rows_of(dashboard(), []), WINDOW, VARIABLES, 1400)
    svg = text[text.index("<svg") : text.index("</body>")]
    element = ET.fromstring(svg)  # noqa: S314 - our own text
    words = [each.text for each in element.iter("{http://www.w3.org/2000/svg}text")]
    for panel in dashboard()["panels"]:
        prefix = "⌄ " if panel["type"] == "row" else ""
        assert prefix + panel["title"] in words
    assert element.attrib["height"] == str(height)
    assert "Quorate: namespace default, name q-quorate, 1970-01-01 00:16:40" in text


def test_rows_are_chosen_by_their_titles_and_moved_up() -> None:
    chosen = rows_of(dashboard(), ["Commits", "Membership"])
    titles = [panel["title"] for panel in chosen]
    assert titles[0] == "Membership"
    assert "Commits" in titles
    assert "Leader" not in titles
    assert chosen[0]["gridPos"]["y"] == 0
    commits = titles.index("Commits")
    ends = [panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in chosen[:commits]]
    assert chosen[commits]["gridPos"]["y"] == max(ends)
    with pytest.raises(DrawingError, match="no row is called Nothing: At a glance, "):
        rows_of(dashboard(), ["Nothing"])


def test_variables_are_filled_in() -> None:
    assert filled_in('m{a="$namespace",b=~"${name}-[0-9]+$"}', VARIABLES) == (
        'm{a="default",b=~"q-quorate-[0-9]+$"}'
    )
    with pytest.raises(DrawingError, match=r"variable \$__rate_interval has no value"):
        filled_in("rate(m[$__rate_interval])", VARIABLES)


def test_a_query_is_of_a_moment_or_of_a_time() -> None:
    asked: list[tuple[str, Mapping[str, str]]] = []

    def ask(path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        asked.append((path, parameters))
        return answer(path, parameters)

    (moment,) = series_of(ask, target(instant=True), WINDOW, VARIABLES)
    (time,) = series_of(ask, target(), WINDOW, VARIABLES)
    query = {"query": 'm{pod=~"q-quorate-[0-9]+"}'}
    assert asked == [
        ("query", query | {"time": "1100.000"}),
        ("query_range", query | {"start": "1000.000", "end": "1100.000", "step": "10.000"}),
    ]
    assert moment.name == time.name == "q-quorate-0 p99"
    assert moment.points == ((1100, 1),)
    assert len(time.points) == 10


def test_what_is_no_number_is_no_point() -> None:
    values = [[1000, "NaN"], [1010, "2"], [1020, "+Inf"]]
    (found,) = series_of(lambda *_: [{"metric": {}, "values": values}], target(), WINDOW, VARIABLES)
    assert found.points == ((1010, 2),)
    assert found.name == " p99"


def served(monkeypatch: pytest.MonkeyPatch, given: bytes | Exception) -> list[str]:
    """Lets Prometheus answer each request so; the requests."""
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        asked.append(url)
        if isinstance(given, Exception):
            raise given
        return io.BytesIO(given)

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return asked


def result(*series: dict[str, Any]) -> bytes:
    return json.dumps({"status": "success", "data": {"result": series}}).encode()


def small(folder: Path, kind: str = "stat") -> Path:
    """A dashboard of one panel."""
    (row, leader, *_) = dashboard()["panels"]
    path = folder / "dashboard.json"
    path.write_text(json.dumps({"panels": [row, leader | {"type": kind}]}))
    return path


def test_a_page_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = served(monkeypatch, LEADS)
    written = tmp_path / "page.html"
    arguments = [*ARGUMENTS, "--prometheus", "http://host:9/", "--width", "800", str(written)]
    assert draw_dashboard.main(arguments, dashboard=small(tmp_path)) == 0
    assert capsys.readouterr().out == f"{written}: 800,230\n"
    assert ">q-quorate-0</text>" in written.read_text()
    assert asked[0].startswith("http://host:9/api/v1/query_range?query=quorate_current_epoch")
    assert asked[1].startswith("http://host:9/api/v1/query?query=quorate_active_controller")


LEADS = result({"metric": LABELS, "value": [1100, "1"]})
BROKEN = urllib.error.HTTPError(
    "http://host",
    400,
    "Bad Request",
    None,  # type: ignore[arg-type] # it has no headers
    io.BytesIO(b"parse error"),
)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (urllib.error.URLError("refused"), "stat", "does not answer: <urlopen error refused>"),
        (BROKEN, "stat", "refuses a query: parse error"),
        (b"<html>", "stat", "did not answer with a query's result"),
        (b"[]", "stat", "did not answer with a query's result"),
        (result(), "stat", "no data: Prometheus has nothing of namespace default, name q-quorate"),
        (LEADS, "heatmap", "Leader: panels of type heatmap are not drawn"),
    ],
)
def test_what_cannot_be_drawn_is_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: bytes | Exception,
    kind: str,
    told: str,
) -> None:
    served(monkeypatch, given)
    written = tmp_path / "page.html"
    assert draw_dashboard.main([*ARGUMENTS, str(written)], dashboard=small(tmp_path, kind)) == 1
    error = capsys.readouterr().err
    assert error.startswith("draw_dashboard: ")
    assert told in error
    assert not written.exists()


def test_a_panel_that_shows_what_is_absent_is_no_data(tmp_path: Path) -> None:
    def ask(path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
        return answer(path, parameters) if parameters["query"].startswith("absent") else []

    panels = json.loads(small(tmp_path).read_text())["panels"]
    with pytest.raises(DrawingError, match="no data"):
        page(ask, panels, WINDOW, VARIABLES, 1400)


def test_an_address_is_of_http(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*ARGUMENTS, "--prometheus", "file:///etc", str(tmp_path / "page.html")]
    assert draw_dashboard.main(arguments, dashboard=small(tmp_path)) == 1
    assert "file:///etc is not the address of a Prometheus" in capsys.readouterr().err


def test_times_are_seconds_or_of_iso_8601(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = served(monkeypatch, LEADS)
    times = ["--last", "10m", "--to", "1970-01-01T00:20:00"]
    arguments = [*ARGUMENTS[:4], *times, str(tmp_path / "page.html")]
    assert draw_dashboard.main(arguments, dashboard=small(tmp_path)) == 0
    assert urllib.parse.parse_qs(asked[1])["time"] == ["1200.000"]
    assert "1970-01-01 00:10:00 to " in (tmp_path / "page.html").read_text()
    with pytest.raises(SystemExit) as ended:
        draw_dashboard.main([*arguments, "--from", "1200"], dashboard=small(tmp_path))
    assert ended.value.code == 2
    assert "has to end after it begins" in capsys.readouterr().err
