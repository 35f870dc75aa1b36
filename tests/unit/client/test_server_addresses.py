"""Servers as people write them."""

from __future__ import annotations

import pytest

from quorate.client.server_addresses import format_server, parse_server, parse_servers


def test_servers_are_parsed_and_written_alike() -> None:
    servers = parse_servers("h:1,[::1]:65535")
    assert servers == [("h", 1), ("::1", 65535)]
    assert [format_server(server) for server in servers] == ["h:1", "[::1]:65535"]


@pytest.mark.parametrize(
    "text",
    ["h", ":1", "h:", "h:0", "h:65536", "h:x", "", "http://h:1", "[::1", "a b:1", "[]:1", "a;b:1"],
)
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|port must be"):
        parse_server(text)


@pytest.mark.parametrize("text", ["a:1;b:1", "::1:1"])
def test_what_is_more_than_one_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_server(text)
