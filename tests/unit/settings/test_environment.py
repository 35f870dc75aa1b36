"""Variables that look like settings."""

from __future__ import annotations

import pytest

from quorate.admin.config import read_config as read_admin
from quorate.autojoin.config import read_config as read_autojoin
from quorate.server.config import read_config as read_controller
from quorate.settings.environment import EVERY_SETTING, environment_name, unread_variables

TLS = {
    "security.protocol": "GRPC_SSL",
    "ssl.keystore.location": "/pair.pem",
    "ssl.truststore.location": "/ca.pem",
}
OPERATOR = {"autojoin.statefulset": "q", "autojoin.namespace": "n"}
CONTROLLER = {
    "node.id": "1",
    "listeners": "GRPC://127.0.0.1:9094",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9094",
    "metadata.log.dir": "/d",
}


def warnings(environment: dict[str, str], *, reads_listeners: bool = True) -> list[str]:
    return list(unread_variables(environment, (), reads_listeners=reads_listeners))


def test_a_misspelt_variable_is_named_with_the_setting_that_is_meant() -> None:
    (warning,) = warnings({"QUORATE_HELATH_PORT": "1", "QUORATE_HEALTH_PORT": "1", "HOME": "/"})
    assert warning == (
        "QUORATE_HELATH_PORT is not a setting of this release: it is ignored. Is "
        "QUORATE_HEALTH_PORT (health.port) meant?"
    )


def test_a_variable_that_is_like_none_has_no_suggestion() -> None:
    (warning,) = warnings({"QUORATE_ZZZZZZ": "secret"})
    assert warning == "QUORATE_ZZZZZZ is not a setting of this release: it is ignored"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("QUORATE_SERVICE_HOST", "10.0.0.1"),
        ("QUORATE_ADMIN_SERVICE_PORT", "9095"),
        ("QUORATE_ADMIN_SERVICE_PORT_GRPC", "9095"),
        ("QUORATE_PORT", "tcp://10.0.0.1:9094"),
        ("QUORATE_PORT_9094_TCP", "tcp://10.0.0.1:9094"),
        ("QUORATE_PORT_9094_TCP_ADDR", "10.0.0.1"),
        ("QUORATE_PORT_9094_TCP_PROTO", "tcp"),
        ("QUORATE_KAFKA_FIXTURES", "/fixtures"),
        ("QUORATE_CHAOS_CONTROL", "1"),
        ("QUORATE_AUTOJOIN_STATEFULSET", "q"),
        ("QUORATE_LISTENERS", "GRPC://:9094"),
    ],
)
def test_what_kubernetes_tools_and_other_services_read_is_no_warning(name: str, value: str) -> None:
    assert warnings({name: value}) == []


def test_variables_of_one_listener_are_the_controllers() -> None:
    name = "QUORATE_LISTENER_NAME_GRPC_SSL_KEYSTORE_LOCATOIN"
    assert warnings({name: "/pair.pem"}, reads_listeners=False) == []
    assert warnings({name: "/pair.pem"})[0].startswith(name)


def test_every_setting_of_every_service_is_known() -> None:
    read = {
        *read_controller(CONTROLLER, {}).effective,
        *read_admin({"node.id": "1", **TLS}, {}).effective,
        *read_autojoin(OPERATOR | TLS, {}).effective,
    }
    assert read == EVERY_SETTING


def test_the_services_warn() -> None:
    variable = {environment_name("metadata.log.dri"): "/d"}
    for config in (
        read_controller(CONTROLLER, variable),
        read_admin({"node.id": "1"}, variable),
        read_autojoin(OPERATOR, variable),
    ):
        assert any("QUORATE_METADATA_LOG_DRI" in warning for warning in config.warnings)
