"""The header by which somebody calls for somebody else."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from quorate.rpc.authorization import FORWARDED_PRINCIPAL, forwarding


@pytest.mark.parametrize("name", ["User:CN=a\\, b+c,O=Übersee", "User:50%20;x\n"])
def test_a_forwarded_principal_is_ascii_and_comes_back(name: str) -> None:
    ((key, value),) = forwarding(name)
    assert key == FORWARDED_PRINCIPAL
    assert value.isascii()
    assert value.isprintable()
    assert unquote(value) == name
