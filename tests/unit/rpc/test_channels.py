"""Channel options keep reconnecting within an election's time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING

from quorate.h2.client.channel import Channel
from quorate.h2.name_resolver import RESOLVER
from quorate.rpc.channels import (
    CHANNEL_OPTIONS,
    MESSAGE_BYTES_MAX,
    RENEW_AFTER_S,
    SERVER_OPTIONS,
    ChannelPool,
    channel_options,
    connect_ms,
    resolved_target,
    target,
)
from quorate.settings.transport import Transport

if TYPE_CHECKING:
    import pytest


def test_a_peer_that_returns_is_reached_within_a_quarter_of_a_second() -> None:
    options = dict(channel_options(connect_ms(2000)))
    assert options["grpc.max_reconnect_backoff_ms"] <= 250
    assert options["grpc.initial_reconnect_backoff_ms"] <= options["grpc.max_reconnect_backoff_ms"]


def test_a_connection_has_half_the_time_of_a_request() -> None:
    """For gRPC the shortest backoff is the time for TCP, TLS and HTTP/2 together."""
    for request_timeout_ms in (100, 2000, 6000, 30_000):
        options = dict(channel_options(connect_ms(request_timeout_ms)))
        assert options["grpc.min_reconnect_backoff_ms"] == max(100, request_timeout_ms // 2)
        # A connection that lives is not given up sooner than one that begins.
        assert options["grpc.keepalive_timeout_ms"] >= options["grpc.min_reconnect_backoff_ms"]


def test_the_largest_batch_goes_from_a_server_to_whoever_fetches() -> None:
    assert dict(CHANNEL_OPTIONS)["grpc.max_receive_message_length"] == MESSAGE_BYTES_MAX
    assert dict(SERVER_OPTIONS)["grpc.max_send_message_length"] == MESSAGE_BYTES_MAX
    assert MESSAGE_BYTES_MAX > 8 * 1024 * 1024


def test_controllers_are_called_without_the_proxy_of_the_environment() -> None:
    assert dict(channel_options(connect_ms(2000)))["grpc.enable_http_proxy"] == 0


def test_addresses_are_written_as_grpc_reads_them() -> None:
    assert target("quorate-0.quorate", 9094) == "quorate-0.quorate:9094"
    assert target("::1", 9094) == "[::1]:9094"
    assert target("", 9094) == "[::]:9094"


def test_addresses_of_one_host_are_written_in_one_family() -> None:
    assert resolved_target(["10.0.0.1", "10.0.0.2"], 1) == "ipv4:10.0.0.1:1,10.0.0.2:1"
    assert resolved_target(["::1", "127.0.0.1"], 1) == "ipv6:[::1]:1,[::ffff:127.0.0.1]:1"
    assert resolved_target(["fe80::1%eth0"], 1) == "ipv6:[fe80::1%eth0]:1"


async def test_a_pool_keeps_one_channel_for_each_address() -> None:
    pool = ChannelPool(drain_s=1.0)
    one = pool.get("127.0.0.1", 1)
    assert pool.get("127.0.0.1", 1) is one
    assert pool.get("127.0.0.1", 2) is not one
    await pool.close()


async def test_a_pool_renews_a_channel_to_a_name_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forgotten: list[str] = []
    monkeypatch.setattr(RESOLVER, "forget", forgotten.append)
    pool, loop = ChannelPool(drain_s=1.0), asyncio.get_running_loop()
    named, numbered = pool.get("one.example", 1), pool.get("127.0.0.1", 1)
    pool.renew("one.example", 1)
    assert pool.get("one.example", 1) is named
    with monkeypatch.context() as later:
        now_s = loop.time() + RENEW_AFTER_S
        later.setattr(loop, "time", lambda: now_s)
        for host in ("one.example", "127.0.0.1", "unknown.example"):
            pool.renew(host, 1)
        assert pool.get("one.example", 1) is not named
        assert pool.get("127.0.0.1", 1) is numbered
        assert forgotten == ["one.example"]
        later.setattr(loop, "time", lambda: now_s + RENEW_AFTER_S)
        renewed = pool.get("one.example", 1)
        pool.renew("one.example", 1, keeps_address=True)
        assert pool.get("one.example", 1) is not renewed
    assert forgotten == ["one.example"]
    await pool.close()


async def test_a_pool_makes_channels_of_its_transport() -> None:
    pool = ChannelPool(drain_s=1.0, transport=Transport.H2)
    assert isinstance(pool.get("127.0.0.1", 1), Channel)
    await pool.close()


def test_plaintext_loads_nothing_that_reads_certificates() -> None:
    """Every command and every controller would pay for it, in time and in memory."""
    code = (
        "import sys, quorate.server.service, quorate.cli.main\n"
        "from quorate.rpc.channels import open_tls\n"
        "assert open_tls(None) is None\n"
        "print('cryptography' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"
