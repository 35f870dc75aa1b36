"""Characters that stdout cannot take are escaped; JSON says the same in any encoding."""

from __future__ import annotations

import io
import json
import sys

import pytest

from quorate.process.output_encoding import escape_unencodable, json_for_stdout

NAME = "josé € \U0001f600"


def put_stdout(monkeypatch: pytest.MonkeyPatch, encoding: str, errors: str) -> io.BytesIO:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, errors=errors))
    return written


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ascii", rb"jos\xe9 \u20ac \U0001f600"),
        ("latin-1", b"jos\xe9 \\u20ac \\U0001f600"),
        ("utf-8", NAME.encode()),
    ],
)
def test_a_character_that_is_lacking_is_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, errors: str, text: bytes
) -> None:
    written = put_stdout(monkeypatch, encoding, errors)
    escape_unencodable()
    print(NAME, flush=True)  # noqa: T201 - it is what is tested
    assert written.getvalue() == text + b"\n"


def test_bytes_of_a_path_that_are_no_text_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = put_stdout(monkeypatch, "utf-8", "strict")
    escape_unencodable()
    print(json_for_stdout("a\udcff"), flush=True)  # noqa: T201 - the same
    assert json.loads(written.getvalue()) == "a\udcff"


def test_the_choice_of_a_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    written = put_stdout(monkeypatch, "ascii", "replace")
    escape_unencodable()
    print(NAME, flush=True)  # noqa: T201 - it is what is tested
    assert written.getvalue() == b"jos? ? ?\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_json_is_ascii_where_stdout_is_not_utf_8(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    put_stdout(monkeypatch, encoding, "strict")
    shown = json_for_stdout({"name": NAME})
    assert shown.isascii()
    assert json.loads(shown) == {"name": NAME}


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8"])
def test_json_keeps_characters_in_utf_8(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    put_stdout(monkeypatch, encoding, "strict")
    assert json_for_stdout({"a": NAME}, (",", ":")) == f'{{"a":"{NAME}"}}'


def test_a_stdout_without_an_encoding_takes_all_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stdout in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stdout", stdout)
        escape_unencodable()
        assert json_for_stdout(NAME) == f'"{NAME}"'
