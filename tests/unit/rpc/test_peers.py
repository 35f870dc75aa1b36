"""What gRPC's names of peers say."""

from __future__ import annotations

import pytest

from quorate.rpc.peers import address_of, client_of


@pytest.mark.parametrize(
    ("peer", "client", "address"),
    [
        ("ipv4:127.0.0.1:4711", "ipv4:127.0.0.1", ("127.0.0.1", 4711)),
        ("ipv6:[::1]:4711", "ipv6:[::1]", ("::1", 4711)),
        ("ipv6:%5B::1%5D:4711", "ipv6:%5B::1%5D", ("::1", 4711)),
        ("unix:/a/b", "unix:/a/b", None),
    ],
)
def test_a_client_is_its_address(peer: str, client: str, address: tuple[str, int] | None) -> None:
    assert client_of(peer) == client
    assert address_of(peer) == address
