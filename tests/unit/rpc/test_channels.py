"""Channel options keep reconnecting within an election's time."""

from __future__ import annotations

from quorate.rpc.channels import CHANNEL_OPTIONS, MESSAGE_BYTES_MAX, SERVER_OPTIONS


def test_a_peer_that_returns_is_reached_within_a_quarter_of_a_second() -> None:
    options = dict(CHANNEL_OPTIONS)
    assert options["grpc.max_reconnect_backoff_ms"] <= 250
    assert options["grpc.initial_reconnect_backoff_ms"] <= options["grpc.max_reconnect_backoff_ms"]


def test_both_ends_take_the_largest_batch() -> None:
    for options in (dict(CHANNEL_OPTIONS), dict(SERVER_OPTIONS)):
        assert options["grpc.max_receive_message_length"] == MESSAGE_BYTES_MAX > 8 * 1024 * 1024
