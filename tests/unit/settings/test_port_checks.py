"""A port that is taken: the message has setting, address, reason and remedy."""

from __future__ import annotations

import errno
import socket

import pytest

from quorate.settings.port_checks import (
    any_address,
    bind_problem,
    binding_port,
    each_of,
    own_addresses,
    require_free,
)
from quorate.settings.properties import ConfigError


def test_a_taken_port_is_named_with_its_setting_and_the_systems_reason() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        words = (
            rf"^listeners: 127\.0\.0\.1:{port} cannot be listened on: Address already in use: stop "
            "what listens there, or choose another address$"
        )
        with pytest.raises(ConfigError, match=words), binding_port("listeners", "127.0.0.1", port):
            raise RuntimeError("failed to bind")


def test_where_the_system_has_no_objection_the_failure_itself_is_told() -> None:
    # Port 0 is any free port, so that no other process takes it in between.
    assert bind_problem("127.0.0.1", 0) is None
    words = "port 0 cannot be listened on: out of luck"
    with pytest.raises(ConfigError, match=words), binding_port("health.port", "", 0):
        raise RuntimeError("out of luck")


def test_an_ipv6_host_stands_in_brackets() -> None:
    with (
        pytest.raises(ConfigError, match=r"metrics\.port: \[::2\]:9 cannot be listened on: "),
        binding_port("metrics.port", "::2", 9),
    ):
        raise OSError(99, "Cannot assign requested address")


def test_a_port_can_be_asked_for_without_being_taken() -> None:
    require_free("127.0.0.1", 0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match="Address already in use"):
            require_free("127.0.0.1", port)


def test_addresses_of_other_machines_are_no_own_ones() -> None:
    # 192.0.2.0/24 belongs to no machine.
    assert own_addresses(("127.0.0.2", "192.0.2.1", "127.0.0.1")) == ("127.0.0.2", "127.0.0.1")
    assert own_addresses(("192.0.2.1",)) == ()


def test_of_several_addresses_the_one_that_is_taken_is_named() -> None:
    assert each_of("127.0.0.1") == ("127.0.0.1",)
    with socket.create_server(("127.77.0.2", 0)) as listener:
        port = listener.getsockname()[1]
        hosts = ("127.77.0.1", "127.77.0.2")
        with pytest.raises(OSError, match="Address already in use"):
            require_free(hosts, port)
        words = rf"^listeners: 127\.77\.0\.2:{port} cannot be listened on: Address already in use"
        with pytest.raises(ConfigError, match=words), binding_port("listeners", hosts, port):
            raise RuntimeError("failed to bind")


def test_all_of_a_machine_without_ipv6_is_all_of_its_ipv4(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = socket.socket

    def make(family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
        return system(family, kind)

    assert any_address() == "::"
    monkeypatch.setattr(socket, "socket", make)
    assert any_address() == "0.0.0.0"  # noqa: S104 - compared, not bound


def test_without_descriptors_no_other_address_is_proposed() -> None:
    error = OSError(errno.EMFILE, "Too many open files")
    with pytest.raises(ConfigError, match=r"open files: raise the limit"), binding_port("a", "", 0):
        raise error
