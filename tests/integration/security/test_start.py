"""Faulty certificates are found before a controller listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.api.authorization_settings import STANDARD_AUTHORIZER
from quorate.server.config import read_config
from quorate.server.listeners import ListenerCertificates, Listeners
from quorate.server.service import main_controller
from tests.certificates import DAY, Leaf

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.security.stores import Stores


def settings(stores: Stores) -> dict[str, str]:
    return {
        "node.id": "1",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",
        "metadata.log.dir": str(stores.folder),
        "listeners": "GRPC_SSL://127.0.0.1:1",
        "controller.listener.names": "GRPC_SSL",
        "ssl.keystore.location": str(stores.keystore("controller")),
        "ssl.truststore.location": str(stores.truststore),
        "ssl.client.auth": "required",
    }


def test_a_controller_that_its_own_lists_leave_out_is_warned_about(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    given = settings(stores) | {"authorizer.class.name": STANDARD_AUTHORIZER}
    for identity, warnings in (("controller", 0), ("somebody", 1)):
        config = read_config(given | {"super.users": f"User:CN={identity}"}, {})
        Listeners(config, ListenerCertificates(config.listeners), lambda _: ())
        assert len(caplog.records) == warnings
    assert "calls its peers as User:CN=controller, which may not" in caplog.text


def test_callers_have_names_as_soon_as_there_is_tls(stores: Stores) -> None:
    plain = settings(stores) | {"listener.security.protocol.map": "GRPC_SSL:GRPC"}
    for given, have_names in ((settings(stores), True), (plain, False)):
        config = read_config(given, {})
        listeners = Listeners(config, ListenerCertificates(config.listeners), lambda _: ())
        ((_, listener),) = listeners._open
        assert listener._guard._caller_policy.have_names is have_names


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("gone", "No such file or directory: name a readable PEM file"),
        ("another key", "the certificate does not belong to the private key"),
        ("expired", "the certificate of User:CN=controller expired on "),
    ],
)
def test_unusable_certificates_end_the_process(
    kind: str, problem: str, tmp_path: Path, stores: Stores, capsys: pytest.CaptureFixture[str]
) -> None:
    keystore = stores.keystore("controller")
    one, another = stores.authority.leaf("controller"), stores.authority.leaf("controller")
    match kind:
        case "gone":
            keystore.unlink()
        case "another key":
            stores.give("controller", Leaf(one.certificate, another.key))
        case _:
            stores.give("controller", stores.authority.leaf("controller", valid_for=-DAY))
    properties = settings(stores) | {"ssl.key.password": "hush"}
    path = tmp_path / "controller.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    assert main_controller(str(path)) == 1
    said = capsys.readouterr().err
    assert "hush" not in said
    assert f"ssl.keystore.location={keystore}" in said
    last = said.splitlines()[-1]
    assert last.startswith(f"quorate controller: ssl.keystore.location {keystore}: {problem}")
