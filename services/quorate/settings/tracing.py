"""Parses tracing settings and OpenTelemetry's environment variables.

OpenTelemetry's variables are read as they are (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_SDK_DISABLED`
and so on), so that people who trace other programs have nothing to learn; a key of ours takes
precedence. The service name is the exception, because ours is only a prefix. The variables are
often set for other programs, so an unusable one is a warning. An unusable key of ours is an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from quorate.records.value_types import keyword_value_type
from quorate.settings.exporter_variables import check_exporter, warning_of_attributes
from quorate.settings.properties import ConfigError, parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quorate.settings.properties import Settings

ENDPOINT: Final = "tracing.otlp.endpoint"
FETCH_RATIO: Final = "tracing.fetch.ratio"
WRITE_RATIO: Final = "tracing.write.ratio"
WRITE_RATIO_DEFAULT: Final = 0.01
SERVICE_PREFIX: Final = "tracing.service.prefix"
SERVICE_PREFIX_DEFAULT: Final = "quorate"
# Default port by scheme: the standard port of OTLP, and the port of HTTPS for a collector on the
# internet.
_PORTS: Final = {"http": 4317, "https": 443}
_FORMS: Final = "write HOST:PORT, http://HOST:PORT or https://..."
# A URL with a user, a query, or an escape; an IPv6 zone is in brackets.
_SECRETIVE: Final = re.compile(r"[@?]|%(?![^\[\]]*\])")
_PREFIX_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
# The first of these that is set counts.
_PROTOCOL_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_SAMPLER_VARIABLES: Final = ("OTEL_TRACES_SAMPLER",)
_PROTOCOL: Final = "grpc"
# A parent's decision is kept, and a trace that begins here is sampled by our settings.
_SAMPLER: Final = "parentbased_always_on"
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@keyword_value_type
class TracingSettings:
    """An OTLP collector over gRPC; `https` means TLS. Ratios are from 0 to 1.

    The services of one quorum share a prefix of their names: `quorate-controller-1`. With
    `gives_up`, as in a command, tracing ends at the first failed call to the collector.
    """

    endpoint: str
    fetch_ratio: float = 0.0
    write_ratio: float = WRITE_RATIO_DEFAULT
    service_prefix: str = SERVICE_PREFIX_DEFAULT
    gives_up: bool = False

    def name_of(self, service: str) -> str:
        """The full name of a service of this quorum, from its kind and id: `controller-1`."""
        return f"{self.service_prefix}-{service}"


def read_tracing(settings: Settings, environment: Mapping[str, str]) -> TracingSettings | None:
    """None without tracing, which is the default. Raises ConfigError."""
    own = settings.text(ENDPOINT, "")
    fetch_ratio = settings.ratio(FETCH_RATIO, 0.0)
    write_ratio = settings.ratio(WRITE_RATIO, WRITE_RATIO_DEFAULT)
    prefix = settings.text(SERVICE_PREFIX, SERVICE_PREFIX_DEFAULT)
    if _PREFIX_FORM.fullmatch(prefix) is None:
        raise ConfigError(
            f"{SERVICE_PREFIX} is {prefix!r}: write up to 63 letters, digits, dots, dashes and "
            "underscores, a letter or a digit first"
        )
    endpoint = parse_endpoint(ENDPOINT, own) if own else _endpoint_in(environment, settings.warn)
    endpoint = _usable(endpoint, environment, settings.warn)
    settings.effective[ENDPOINT] = endpoint or ""
    if endpoint is None:
        return None
    return TracingSettings(
        endpoint=endpoint,
        fetch_ratio=fetch_ratio,
        write_ratio=write_ratio,
        service_prefix=prefix,
    )


def read_command_tracing(
    environment: Mapping[str, str], warn: Callable[[str], None]
) -> TracingSettings | None:
    """The settings of a command, which has no file of them; None where it is not traced."""
    endpoint = _usable(_endpoint_in(environment, warn), environment, warn)
    if endpoint is None:
        return None
    # A manual request is always recorded.
    return TracingSettings(endpoint=endpoint, gives_up=True)


def _endpoint_in(environment: Mapping[str, str], warn: Callable[[str], None]) -> str | None:
    """The collector that OpenTelemetry's variables name, if any; `warn` of one of no use."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    if environment.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return None
    name, text = _first_set(environment, _ENDPOINT_VARIABLES)
    if not text:
        return None
    scheme, separator, rest = text.partition("://")
    try:
        # The path is that of OTLP over HTTP; gRPC has none, as OpenTelemetry's exporter.
        return parse_endpoint(name, f"{scheme}{separator}{rest.partition('/')[0]}")
    except ConfigError:
        warn(f"nothing is traced: {name} is {_shown(text)}: {_FORMS}")
        return None


def _usable(
    endpoint: str | None, environment: Mapping[str, str], warn: Callable[[str], None]
) -> str | None:
    """The endpoint, unless the exporter has a variable of no use; `warn` of all that is odd."""
    if endpoint is None:
        return None
    try:
        check_exporter(endpoint, environment)
    except ConfigError as error:
        warn(f"nothing is traced: {error}")
        return None
    _warn_of_ignored(environment, warn)
    if warning := warning_of_attributes(environment):
        warn(warning)
    return endpoint


def _warn_of_ignored(environment: Mapping[str, str], warn: Callable[[str], None]) -> None:
    """One warning of the variables that ask for what a service does not do with its spans."""
    ignored = [
        f"{name}={text!r}"
        for names, ours in ((_PROTOCOL_VARIABLES, _PROTOCOL), (_SAMPLER_VARIABLES, _SAMPLER))
        for name, text in (_first_set(environment, names),)
        if text.lower() not in ("", ours)
    ]
    if ignored:
        warn(
            f"ignored: {', '.join(ignored)}; spans are sent by gRPC, and {WRITE_RATIO} and "
            f"{FETCH_RATIO} say how many"
        )


def _first_set(environment: Mapping[str, str], names: Sequence[str]) -> tuple[str, str]:
    """The first of these variables that is not empty, with its value; else two empty texts."""
    values = ((name, environment.get(name, "").strip()) for name in names)
    return next(((name, text) for name, text in values if text), ("", ""))


def parse_endpoint(key: str, text: str) -> str:
    """`HOST:PORT` or a URL, as a URL with a port. Raises ConfigError that names the key."""
    scheme, separator, rest = text.partition("://")
    scheme, address = (scheme.lower(), rest.rstrip("/")) if separator else ("http", text)
    if scheme not in _PORTS or _SECRETIVE.search(text):
        raise ConfigError(f"{key} is {_shown(text)}: {_FORMS}")
    if separator and ":" not in address.rpartition("]")[2]:
        address = f"{address}:{_PORTS[scheme]}"
    host, port = parse_address(key, address)
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


def _shown(text: str) -> str:
    """A value as messages have it: what is more than a host and a port may be a password."""
    if not _SECRETIVE.search(text):
        return repr(text)
    scheme, separator, _ = text.partition("://")
    return repr(f"{scheme}{separator}[hidden]" if separator else "[hidden]")
