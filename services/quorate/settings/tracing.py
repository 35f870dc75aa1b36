"""Where spans are sent, and how many of them: Kafka has no names for it, OpenTelemetry has.

Its variables are read as they are (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SDK_DISABLED` and so on),
so that whoever traces other programs has nothing to learn; a key of ours comes before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.settings.properties import ConfigError, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.settings.properties import Settings

ENDPOINT: Final = "tracing.otlp.endpoint"
FETCH_RATIO: Final = "tracing.fetch.ratio"
WRITE_RATIO: Final = "tracing.write.ratio"
WRITE_RATIO_DEFAULT: Final = 0.01
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings:
    """A collector of OTLP over gRPC; `https` means TLS. Ratios are from 0 to 1."""

    endpoint: str
    fetch_ratio: float = 0.0
    write_ratio: float = WRITE_RATIO_DEFAULT


def read_tracing(settings: Settings, environment: Mapping[str, str]) -> TracingSettings | None:
    """None where nothing is traced, which is the default. Raises ConfigError."""
    own = settings.text(ENDPOINT, "")
    fetch_ratio = settings.ratio(FETCH_RATIO, 0.0)
    write_ratio = settings.ratio(WRITE_RATIO, WRITE_RATIO_DEFAULT)
    endpoint = parse_endpoint(ENDPOINT, own) if own else endpoint_in(environment)
    settings.effective[ENDPOINT] = endpoint or ""
    if endpoint is None:
        return None
    return TracingSettings(endpoint=endpoint, fetch_ratio=fetch_ratio, write_ratio=write_ratio)


def endpoint_in(environment: Mapping[str, str]) -> str | None:
    """The collector that OpenTelemetry's variables name, if any. Raises ConfigError."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    for name in _ENDPOINT_VARIABLES:
        text = environment.get(name, "").strip()
        if text:
            return parse_endpoint(name, text)
    return None


def parse_endpoint(key: str, text: str) -> str:
    """`HOST:PORT` or a URL, as a URL without a path. Raises ConfigError that names the key."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "http", text
    if scheme.lower() not in ("http", "https"):
        raise ConfigError(f"{key} is {text!r}: write HOST:PORT, http://HOST:PORT or https://...")
    address = rest.rstrip("/")
    host, port = parse_address(key, address)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme.lower()}://{shown}:{port}"
