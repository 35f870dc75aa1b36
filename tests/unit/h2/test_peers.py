"""A peer has the name that gRPC gives it."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.h2.peers import client_of, peer_of


@pytest.mark.parametrize(
    ("address", "peer", "client"),
    [
        (("127.0.0.1", 1), "ipv4:127.0.0.1:1", "ipv4:127.0.0.1"),
        (("::ffff:10.0.0.1", 2, 0, 0), "ipv4:10.0.0.1:2", "ipv4:10.0.0.1"),
        (("::1", 3, 0, 0), "ipv6:%5B::1%5D:3", "ipv6:%5B::1%5D"),
        (None, "unknown:", "unknown"),
    ],
)
def test_an_address_has_a_name(address: Any, peer: str, client: str) -> None:  # noqa: ANN401
    assert peer_of(address) == peer
    assert client_of(peer) == client
