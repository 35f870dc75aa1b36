"""Where spans are sent, and how many of them: Kafka has no names for it, OpenTelemetry has.

Its variables are read as they are (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SDK_DISABLED` and so on),
so that people who trace other programs have nothing to learn; a key of ours comes before them.
Only the name of the service is theirs first: ours has just its beginning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.records.value import named_value
from quorate.settings.properties import ConfigError, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from quorate.settings.properties import Settings

ENDPOINT: Final = "tracing.otlp.endpoint"
FETCH_RATIO: Final = "tracing.fetch.ratio"
WRITE_RATIO: Final = "tracing.write.ratio"
WRITE_RATIO_DEFAULT: Final = 0.01
SERVICE_PREFIX: Final = "tracing.service.prefix"
SERVICE_PREFIX_DEFAULT: Final = "quorate"
# Of a URL without one: that of OTLP, and that of a collector reached by TLS through the internet.
_PORTS: Final = {"http": 4317, "https": 443}
_PREFIX_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@named_value
class TracingSettings:
    """A collector of OTLP over gRPC; `https` means TLS. Ratios are from 0 to 1.

    The services of one quorum have names that begin alike: `quorate-controller-1`.
    """

    endpoint: str
    fetch_ratio: float = 0.0
    write_ratio: float = WRITE_RATIO_DEFAULT
    service_prefix: str = SERVICE_PREFIX_DEFAULT

    def name_of(self, service: str) -> str:
        """The whole name of a service of this quorum, for what it is: `controller-1`."""
        return f"{self.service_prefix}-{service}"


def read_tracing(settings: Settings, environment: Mapping[str, str]) -> TracingSettings | None:
    """None where nothing is traced, which is the default. Raises ConfigError."""
    own = settings.text(ENDPOINT, "")
    fetch_ratio = settings.ratio(FETCH_RATIO, 0.0)
    write_ratio = settings.ratio(WRITE_RATIO, WRITE_RATIO_DEFAULT)
    prefix = settings.text(SERVICE_PREFIX, SERVICE_PREFIX_DEFAULT)
    if _PREFIX_FORM.fullmatch(prefix) is None:
        raise ConfigError(
            f"{SERVICE_PREFIX} is {prefix!r}: write up to 63 letters, digits, dots, dashes and "
            "underscores, a letter or a digit first"
        )
    endpoint = parse_endpoint(ENDPOINT, own) if own else endpoint_in(environment)
    settings.effective[ENDPOINT] = endpoint or ""
    if endpoint is None:
        return None
    return TracingSettings(
        endpoint=endpoint,
        fetch_ratio=fetch_ratio,
        write_ratio=write_ratio,
        service_prefix=prefix,
    )


def endpoint_in(environment: Mapping[str, str]) -> str | None:
    """The collector that OpenTelemetry's variables name, if any. Raises ConfigError."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    for name in _ENDPOINT_VARIABLES:
        text = environment.get(name, "").strip()
        if text:
            scheme, separator, rest = text.partition("://")
            # The path is that of OTLP over HTTP; gRPC has none, as OpenTelemetry's exporter.
            return parse_endpoint(name, f"{scheme}{separator}{rest.partition('/')[0]}")
    return None


def parse_endpoint(key: str, text: str) -> str:
    """`HOST:PORT` or a URL, as a URL with a port. Raises ConfigError that names the key."""
    scheme, separator, rest = text.partition("://")
    scheme, address = (scheme.lower(), rest.rstrip("/")) if separator else ("http", text)
    if scheme not in _PORTS:
        raise ConfigError(f"{key} is {text!r}: write HOST:PORT, http://HOST:PORT or https://...")
    if separator and ":" not in address.rpartition("]")[2]:
        address = f"{address}:{_PORTS[scheme]}"
    host, port = parse_address(key, address)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"
