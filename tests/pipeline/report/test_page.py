"""The page: whole, harmless, and honest about what it leaves out."""

from __future__ import annotations

from html.parser import HTMLParser

from quorate.pipeline.report.page import Amount, HealthVerdict, Section, Table, page

EVIL = "<img src=x onerror=alert(1)>"


class Seen(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.labels: list[str | None] = []
        self.classes: list[str | None] = []
        self.links: list[str | None] = []
        self.ids: list[str | None] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}
        said = dict(attrs)
        self.links += [said["href"]] if "href" in said else []
        self.ids += [said["id"]] if "id" in said else []
        if tag == "td":
            self.labels.append(dict(attrs).get("data-label"))
            self.classes.append(dict(attrs).get("class"))

    def handle_data(self, data: str) -> None:
        self.text += data


def a_page(rows: tuple[tuple[object, ...], ...], row_count: int) -> Seen:
    table = Table(EVIL, (EVIL, "n"), rows, row_count, f"quorate {EVIL}")
    section = Section(EVIL, "w", (), (table,))
    return Seen(page(EVIL, ((EVIL, EVIL),), (HealthVerdict("ok", EVIL, EVIL),), (section,)))


def test_text_of_a_log_stays_text() -> None:
    seen = a_page(((EVIL, 1234),), 1)
    assert seen.text.count(EVIL) == 12
    assert not {"img", "script", "link", "iframe"} & set(seen.tags)
    assert not {name for name in seen.names if name.startswith(("on", "src"))}
    assert seen.ids == ["img-src-x-onerror-alert-1"]
    assert seen.links == ["#img-src-x-onerror-alert-1"]


def test_rows_that_are_left_out_are_counted() -> None:
    assert "41 more rows are left out" in a_page((("a", 1),), 42).text
    assert "left out" not in a_page((("a", 1),), 1).text
    assert "None." in a_page((), 0).text


def test_verdicts_come_before_everything_else() -> None:
    text = a_page((), 0).text
    assert text.index("Verdicts") < text.index("None.")


def test_a_cell_knows_its_heading_since_a_phone_has_no_room_for_columns() -> None:
    seen = a_page((("a", 1), ("b", Amount("2 s"))), 2)
    assert seen.labels == [EVIL, "n"] * 2
    assert seen.classes == [None, "number"] * 2


def test_what_is_not_known_stands_where_the_numbers_of_its_column_do() -> None:
    assert a_page((("a", None), ("b", 2)), 2).classes == [None, "number"] * 2
    assert a_page((("a", None),), 1).classes == [None, None]


def test_a_verdict_has_room_for_a_path_and_what_is_wrong_there_and_no_more() -> None:
    def shown(words: str) -> str:
        return Seen(page("t", (), (HealthVerdict("critical", "Damage", words),), ())).text

    told = f"/{'d' * 300}/x.log: byte 431: CRC"
    assert told in shown(told)
    assert len(shown("x" * 100_000)) < 10_000


def test_a_flag_in_a_verdict_is_not_broken_and_the_metric_is_named() -> None:
    words = "name it with --path, twice --a-b or a--b; --a snapshot reads"
    verdict = HealthVerdict("unknown", "Lag", words, "LogLag")
    text = page("t", (), (verdict,), ())
    assert "<code>--path</code>, twice <code>--a-b</code> or a--b" in text
    assert "<code>--a snapshot</code> reads" in text
    assert "<small>LogLag</small>" in text


def test_a_moment_in_a_verdict_is_not_broken_and_written_as_all_others() -> None:
    verdict = HealthVerdict("warning", "Elections", "2: in the hour before 2026-01-06T23:30:01Z")
    assert "before <time>2026-01-06 23:30:01</time></span>" in page("t", (), (verdict,), ())


def test_a_verdict_tells_its_threshold_and_where_to_read_on() -> None:
    there = HealthVerdict("ok", "Lag", "3", "warning above 9", "Whose logs?", "LogLag")
    elsewhere = HealthVerdict("ok", "Damage", "0", "", "Another page")
    text = page("t", (), (there, elsewhere), (Section("Whose logs?", "w", (), ()),))
    assert '<strong><a href="#whose-logs">Lag</a></strong> 3' in text
    assert "<small>warning above 9, LogLag</small>" in text
    assert '<section id="whose-logs">' in text
    assert "<strong>Damage</strong> 0</span>" in text


def test_a_command_can_be_typed_whole() -> None:
    command = f"quorate pipeline elections --path /{'d' * 3000} --where 'a > 3'"
    table = Table("t", ("a",), ((1,),), 1, command, "How it came")
    text = Seen(page("t", (), (), (Section("s", "w", (), (table,)),))).text
    assert f"How it came: {command}" in text
