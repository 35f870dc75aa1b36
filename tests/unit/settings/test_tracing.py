"""Target and rate of spans: our keys, OpenTelemetry's variables, and nothing by default."""

from __future__ import annotations

import pytest

from quorate.settings.properties import ConfigError, Settings
from quorate.settings.tracing import TracingSettings, read_command_tracing, read_tracing

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


def warned(environment: dict[str, str], properties: dict[str, str] | None = None) -> list[str]:
    """The warnings of a service, which are those of a command, too."""
    settings = Settings(properties or {}, environment)
    found = read_tracing(settings, environment)
    if properties is None:
        of_command: list[str] = []
        asked = read_command_tracing(environment, of_command.append)
        assert (asked is None) == (found is None)
        assert tuple(of_command) == settings.warnings()
    return list(settings.warnings())


@pytest.mark.parametrize("variable", [ENDPOINT, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
@pytest.mark.parametrize(
    "text",
    [
        *("unix:///dev/otel-grpc.sock", "unix:/dev/otel.sock", "dns:///collector:4317"),
        *("nowhere", "http://", "grpc://a:1", "http://a:port", "http://a:0", "\udcff:1", "[::1"),
    ],
)
def test_a_variable_of_no_use_is_a_warning_and_nothing_is_traced(variable: str, text: str) -> None:
    (warning,) = warned({variable: text})
    assert warning.startswith(f"nothing is traced: {variable} is {text!r}: write HOST:PORT")
    assert read(environment={variable: text}) is None


@pytest.mark.parametrize(
    "text",
    [
        *("http://ann:s3cret@a:1", "grpc://ann:s3cret@a:1/x@y", "ann:s3cret@a:1"),
        *("http://ann:s3/cret@a:1", "http:/ann:s3cret@a:1", "https://ann:s3cret%40a"),
    ],
)
def test_a_password_in_an_endpoint_is_hidden(text: str) -> None:
    (warning,) = warned({ENDPOINT: text})
    with pytest.raises(ConfigError) as raised:
        read({"tracing.otlp.endpoint": text})
    for told in (warning, str(raised.value)):
        assert "[hidden]" in told
        assert "s3" not in told
        assert "write HOST:PORT" in told


def test_what_is_asked_of_other_programs_is_reported_as_ignored() -> None:
    collector = {ENDPOINT: "a:1"}
    asked = {
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_SAMPLER": "always_off",
    }
    (warning,) = warned(collector | asked)
    assert warning.startswith(
        "ignored: OTEL_EXPORTER_OTLP_PROTOCOL='http/protobuf', OTEL_TRACES_SAMPLER='always_off';"
        " spans are sent by gRPC, and tracing.write.ratio"
    )
    (warning,) = warned(asked, {"tracing.otlp.endpoint": "a:1"})
    assert warning.startswith("ignored: OTEL_EXPORTER_OTLP_PROTOCOL='http/protobuf'")
    (warning,) = warned(collector | {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"})
    assert "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL='http/json';" in warning
    ours = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_SAMPLER": "parentbased_always_on"}
    of_traces = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}
    assert warned(collector | ours) == warned(collector | asked | ours | of_traces) == []
    # Without a collector nothing is ignored.
    assert warned(asked) == []
