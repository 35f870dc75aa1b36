"""A peer has the name that gRPC gives it, and belongs to one client."""

from __future__ import annotations

from typing import Any

import pytest

from quorate.h2.peer_name import client_of, peer_of

NETWORK = "ipv6:2001:db8:1:2::/64"


@pytest.mark.parametrize(
    ("address", "peer", "client"),
    [
        (("127.0.0.1", 1), "ipv4:127.0.0.1:1", "ipv4:127.0.0.1"),
        (("::ffff:10.0.0.1", 2, 0, 0), "ipv4:10.0.0.1:2", "ipv4:10.0.0.1"),
        (("::1", 3, 0, 0), "ipv6:%5B::1%5D:3", "ipv6:::/64"),
        (("2001:db8:1:2:3:4:5:6", 4, 0, 0), "ipv6:%5B2001:db8:1:2:3:4:5:6%5D:4", NETWORK),
        (("fe80::1%eth0", 5, 0, 2), "ipv6:%5Bfe80::1%eth0%5D:5", "ipv6:fe80::/64"),
        (None, "unknown:", "unknown:"),
    ],
)
def test_an_address_has_a_name(address: Any, peer: str, client: str) -> None:  # noqa: ANN401
    assert peer_of(address) == peer
    assert client_of(peer) == client


@pytest.mark.parametrize(
    ("peer", "client"),
    [
        ("ipv6:[2001:db8:1:2::9]:4711", NETWORK),
        ("ipv6:%5B2001:DB8:1:2:ffff:ffff:ffff:ffff%5D:4711", NETWORK),
        ("ipv6:%5B2001:db8:1:3::1%5D:4711", "ipv6:2001:db8:1:3::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5", "ipv6:fe80::/64"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:4711", "ipv4:10.0.0.1"),
        ("ipv6:%5B::ffff:a00:1%5D:4711", "ipv4:10.0.0.1"),
        ("ipv6:strange:1", "ipv6:strange"),
        ("unix:/a/b", "unix:/a/b"),
    ],
)
def test_a_client_is_an_ipv4_address_or_an_ipv6_network(peer: str, client: str) -> None:
    assert client_of(peer) == client
