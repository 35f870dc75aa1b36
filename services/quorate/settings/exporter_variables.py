"""Checks OpenTelemetry's exporter variables before its exporter reads them.

The exporter prints a header that it cannot read, including the secret in it. For other variables it
reports little: a traceback, or the name of a class.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from quorate.settings.properties import ConfigError
from quorate.settings.regular_files import NotRegularFileError, read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping

# A name and a value as written, and as gRPC accepts them.
_WRITTEN: Final = re.compile(r"""([^\s"(),/:;<=>?@\[\\\]{}]+)\s*=([^",;\\]*)""", re.ASCII)
_NAME: Final = re.compile(r"[0-9a-z_.-]+(?<!-bin)", re.ASCII)
_VALUE: Final = re.compile(r"[ -~]*", re.ASCII)
_PAIRS: Final = "cannot be read: write NAME=VALUE,..., percent-encoded"
_RESOURCE: Final = "OTEL_RESOURCE_ATTRIBUTES"
# Two of them are read only together with the first.
_FILES: Final = ("CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE")


def check_exporter(endpoint: str, environment: Mapping[str, str]) -> None:
    """Raises ConfigError for the first variable that keeps spans from this endpoint."""
    name = _name_of("HEADERS", environment)
    headers = environment.get(name, "").split(",")
    if not all(_is_header(header.strip()) for header in headers if header.strip()):
        # A value may be a password.
        raise ConfigError(f"{name} {_PAIRS}")
    name = _name_of("TIMEOUT", environment)
    if name in environment and not _is_duration(environment[name]):
        raise ConfigError(f"{name} is {environment[name]!r}: write a number of seconds above 0")
    name = _name_of("COMPRESSION", environment)
    if name in environment and environment[name].strip().lower() != "gzip":
        raise ConfigError(f"{name} is {environment[name]!r}: write gzip, or leave it out")
    name = _name_of(_FILES[0], environment)
    if endpoint.startswith("https:") and environment.get(name):
        for kind in _FILES:
            _check_file(name.replace(_FILES[0], kind), environment)


def warning_of_attributes(environment: Mapping[str, str]) -> str:
    """The warning about attributes that are left out; empty if all can be read."""
    pairs = environment.get(_RESOURCE, "").split(",")
    if all("=" in pair for pair in pairs if pair.strip()):
        return ""
    return f"{_RESOURCE} {_PAIRS}"


def _name_of(kind: str, environment: Mapping[str, str]) -> str:
    """The variable in effect: the variable for traces takes precedence over the general one."""
    of_traces = f"OTEL_EXPORTER_OTLP_TRACES_{kind}"
    return of_traces if of_traces in environment else f"OTEL_EXPORTER_OTLP_{kind}"


def _is_header(text: str) -> bool:
    pair = _WRITTEN.fullmatch(text)
    if pair is None or not _VALUE.fullmatch(text):
        return False
    name, value = (unquote(part).strip() for part in pair.groups())
    return bool(_NAME.fullmatch(name.lower()) and _VALUE.fullmatch(value))


def _is_duration(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _check_file(name: str, environment: Mapping[str, str]) -> None:
    path = environment.get(name)
    if not path:
        return
    try:
        read_regular(path)
    except NotRegularFileError as error:
        raise ConfigError(f"{name} is {path!r}: {error}") from error
    except OSError as error:
        raise ConfigError(f"{name} is {path!r}: {error.strerror}") from error
