"""gRPC's names of peers."""

from __future__ import annotations

import pytest

from quorate.rpc.peer_address import address_of


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:127.0.0.1:4711", ("127.0.0.1", 4711)),
        ("ipv6:[::1]:4711", ("::1", 4711)),
        ("ipv6:%5B::1%5D:4711", ("::1", 4711)),
        ("unix:/a/b", None),
    ],
)
def test_a_peer_has_an_address_and_a_port(peer: str, address: tuple[str, int] | None) -> None:
    assert address_of(peer) == address
