"""Addresses from which voters have called."""

from __future__ import annotations

from quorate.rpc.limits.shared_connections import ADDRESSES_MAX, VoterAddresses


def test_an_address_is_known_whatever_its_port() -> None:
    addresses = VoterAddresses()
    assert "ipv4:10.0.0.1" not in addresses
    addresses.note("ipv4:10.0.0.1:4711")
    assert "ipv4:10.0.0.1" in addresses
    addresses.note("ipv6:%5B::1%5D:4711")
    assert "ipv6:::/64" in addresses


def test_the_newest_addresses_are_known() -> None:
    addresses = VoterAddresses()
    for number in range(ADDRESSES_MAX + 1):
        addresses.note("ipv4:10.0.1.1:1")
        addresses.note(f"ipv4:10.0.0.{number}:1")
    assert "ipv4:10.0.1.1" in addresses
    assert "ipv4:10.0.0.0" not in addresses
    assert f"ipv4:10.0.0.{ADDRESSES_MAX}" in addresses
