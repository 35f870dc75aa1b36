"""The exporter's variables: unused ones are named in a warning, a header's value never is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from quorate.settings.properties import Settings
from quorate.settings.tracing import TracingSettings, read_command_tracing, read_tracing

if TYPE_CHECKING:
    from pathlib import Path

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
KINDS = ["", "TRACES_"]


def read(
    variables: dict[str, str], endpoint: str = "http://a:1"
) -> tuple[TracingSettings | None, list[str]]:
    """The settings of a service and its warnings, which are those of a command, too."""
    environment = {ENDPOINT: endpoint, **variables}
    settings = Settings({}, environment)
    found = read_tracing(settings, environment)
    of_command: list[str] = []
    assert (read_command_tracing(environment, of_command.append) is None) == (found is None)
    assert tuple(of_command) == settings.warnings()
    return found, of_command


def refused(variables: dict[str, str], endpoint: str = "http://a:1") -> str:
    found, (warning,) = read(variables, endpoint)
    assert found is None
    return warning


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    [
        *("Authorization Bearer s3cret", "a=b,s3cret", "=s3cret", 'a="s3cret"', "a=s3cret;b=c"),
        *("a=s3cret\udcff", "a=s3cretü", "a=s3cret%C3%BC", "a=s3%0Acret", "a-bin=s3cret"),
        *("a!=s3cret", "a b=s3cret", "%C3%BC=s3cret"),
    ],
)
def test_headers_that_cannot_be_read_are_named_without_their_value(kind: str, text: str) -> None:
    name = f"OTEL_EXPORTER_OTLP_{kind}HEADERS"
    form = "cannot be read: write NAME=VALUE,..., percent-encoded"
    assert refused({name: text}) == f"nothing is traced: {name} {form}"


@pytest.mark.parametrize(
    "text",
    ["", "Authorization=Bearer%20x=", "a=b c, X-Scope-OrgID = 1,", "a=", "a=b,,c=d", "a=http://x?"],
)
def test_headers_that_can_be_read_are_no_matter(text: str) -> None:
    found, warnings = read({"OTEL_EXPORTER_OTLP_HEADERS": text})
    assert found is not None
    assert warnings == []


@pytest.mark.parametrize("text", ["s3cret", "a=b,password s3cret"])
def test_attributes_that_cannot_be_read_are_named_without_their_value(text: str) -> None:
    found, warnings = read({"OTEL_RESOURCE_ATTRIBUTES": text})
    assert found is not None
    form = "cannot be read: write NAME=VALUE,..., percent-encoded"
    assert warnings == [f"OTEL_RESOURCE_ATTRIBUTES {form}"]


@pytest.mark.parametrize("text", ["", "a=b", "a=b, c=d=e,"])
def test_attributes_that_can_be_read_are_no_matter(text: str) -> None:
    found, warnings = read({"OTEL_RESOURCE_ATTRIBUTES": text})
    assert found is not None
    assert warnings == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["abc", "", "0", "-1", "nan", "inf", "10s"])
def test_a_timeout_is_seconds(kind: str, text: str) -> None:
    name = f"OTEL_EXPORTER_OTLP_{kind}TIMEOUT"
    wanted = f"nothing is traced: {name} is {text!r}: write a number of seconds above 0"
    assert refused({name: text}) == wanted


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["zstd", "none", ""])
def test_a_compression_is_gzip(kind: str, text: str) -> None:
    name = f"OTEL_EXPORTER_OTLP_{kind}COMPRESSION"
    wanted = f"nothing is traced: {name} is {text!r}: write gzip, or leave it out"
    assert refused({name: text}) == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_is_a_file_that_can_be_read(kind: str, tmp_path: Path) -> None:
    name = f"OTEL_EXPORTER_OTLP_{kind}CERTIFICATE"
    key = f"OTEL_EXPORTER_OTLP_{kind}CLIENT_KEY"
    missing, pipe, there = (str(tmp_path / part) for part in ("missing", "pipe", "there"))
    os.mkfifo(pipe)
    (tmp_path / "there").write_bytes(b"pem")
    tls = "https://a:1"
    wanted = f"nothing is traced: {name} is {missing!r}: No such file or directory"
    assert refused({name: missing}, tls) == wanted
    assert "it is a pipe, not a regular file" in refused({name: pipe}, tls)
    assert f"{key} is {missing!r}: No such" in refused({name: there, key: missing}, tls)
    # Without TLS no file is read, and a key alone is not, either.
    for variables, endpoint in (
        ({name: missing}, "http://a:1"),
        ({key: missing}, tls),
        ({name: there}, tls),
    ):
        found, warnings = read(variables, endpoint)
        assert found is not None
        assert warnings == []


def test_variables_of_traces_come_first_and_none_is_read_without_a_collector() -> None:
    names = ("HEADERS", "TIMEOUT", "COMPRESSION")
    bad = {f"OTEL_EXPORTER_OTLP_{name}": "x y" for name in names}
    good = dict(zip(names, ("a=b", "2.5", "GZIP"), strict=True))
    found, warnings = read(
        {**bad, **{f"OTEL_EXPORTER_OTLP_TRACES_{name}": text for name, text in good.items()}}
    )
    assert found is not None
    assert warnings == []
    assert read(bad, "") == (None, [])
