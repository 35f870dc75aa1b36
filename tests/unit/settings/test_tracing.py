"""Where spans go, and how many: our keys, OpenTelemetry's variables, and nothing by default."""

from __future__ import annotations

import pytest

from quorate.settings.properties import ConfigError, Settings
from quorate.settings.tracing import TracingSettings, read_tracing

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def read(
    properties: dict[str, str] | None = None, environment: dict[str, str] | None = None
) -> TracingSettings | None:
    environment = environment or {}
    return read_tracing(Settings(properties or {}, environment), environment)


def test_nothing_is_traced_unless_it_is_asked_for() -> None:
    assert read() is None
    assert read({"tracing.write.ratio": "1"}) is None


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("jaeger:4317", "http://jaeger:4317"),
        ("http://jaeger:4317/", "http://jaeger:4317"),
        ("https://otel.example:443", "https://otel.example:443"),
        ("[::1]:4317", "http://[::1]:4317"),
        ("http://[::1]", "http://[::1]:4317"),
        ("http://jaeger", "http://jaeger:4317"),
        ("HTTPS://otel.example/", "https://otel.example:443"),
    ],
)
def test_a_collector_is_an_address_or_a_url(text: str, endpoint: str) -> None:
    for found in (read({"tracing.otlp.endpoint": text}), read(environment={ENDPOINT: text})):
        assert found == TracingSettings(endpoint=endpoint, fetch_ratio=0.0, write_ratio=0.01)


def test_a_variable_that_was_written_for_http_has_a_path_that_is_nothing_to_grpc() -> None:
    found = read(environment={ENDPOINT: "http://collector:4318/v1/traces"})
    assert found is not None
    assert found.endpoint == "http://collector:4318"


def test_our_key_comes_before_the_variables_and_traces_before_all_signals() -> None:
    environment = {ENDPOINT: "a:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "b:2"}
    found = read(environment=environment)
    assert found is not None
    assert found.endpoint == "http://b:2"
    found = read({"tracing.otlp.endpoint": "c:3"}, environment)
    assert found is not None
    assert found.endpoint == "http://c:3"
    found = read(environment=environment | {"QUORATE_TRACING_OTLP_ENDPOINT": "d:4"})
    assert found is not None
    assert found.endpoint == "http://d:4"


def test_the_services_of_a_quorum_have_names_that_begin_alike() -> None:
    named = {"tracing.service.prefix": "prod", "tracing.otlp.endpoint": "jaeger:4317"}
    found = read(named)
    assert found is not None
    assert found.name_of("controller-1") == "prod-controller-1"
    found = read(named, {"QUORATE_TRACING_SERVICE_PREFIX": "test"})
    assert found is not None
    assert found.name_of("autojoin") == "test-autojoin"
    assert TracingSettings(endpoint="http://a:1").name_of("cli") == "quorate-cli"


@pytest.mark.parametrize("off", [("OTEL_SDK_DISABLED", "TRUE"), ("OTEL_TRACES_EXPORTER", "none")])
def test_what_switches_opentelemetry_off_does_so_here(off: tuple[str, str]) -> None:
    assert read(environment={ENDPOINT: "a:1", off[0]: off[1]}) is None


def test_the_endpoint_in_force_is_told_at_the_start() -> None:
    settings = Settings({}, {})
    read_tracing(settings, {ENDPOINT: "jaeger:4317"})
    assert settings.effective["tracing.otlp.endpoint"] == "http://jaeger:4317"


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"tracing.otlp.endpoint": "jaeger"}, "tracing.otlp.endpoint has 'jaeger'"),
        ({"tracing.otlp.endpoint": "http://jaeger:4317/v1"}, "tracing.otlp.endpoint"),
        ({"tracing.otlp.endpoint": "grpc://jaeger:4317"}, "write HOST:PORT, http://"),
        ({"tracing.service.prefix": ""}, "tracing.service.prefix is ''"),
        ({"tracing.service.prefix": "a b"}, "tracing.service.prefix is 'a b'"),
        ({"tracing.service.prefix": "a" * 64}, "write up to 63 letters"),
        ({"tracing.fetch.ratio": "1.5"}, "tracing.fetch.ratio is '1.5'"),
        ({"tracing.write.ratio": "-0.1"}, "tracing.write.ratio"),
        ({"tracing.write.ratio": "1e-3"}, "tracing.write.ratio"),
        ({"tracing.write.ratio": "nan"}, "tracing.write.ratio"),
    ],
)
def test_a_malformed_value_is_refused_with_its_key(properties: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(properties)


def test_a_malformed_variable_is_refused_with_its_name() -> None:
    for text in ("nowhere", "http://", "grpc://a:1", "http://a:port"):
        with pytest.raises(ConfigError, match=ENDPOINT):
            read(environment={ENDPOINT: text})
