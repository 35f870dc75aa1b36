"""A channel before it has a connection, and after it was closed."""

from __future__ import annotations

import grpc
import pytest

from quorate.h2.channel import Channel, ChannelTimes

State = grpc.ChannelConnectivity
TIMES = ChannelTimes(
    connect_s=5.0, backoff_s=60.0, backoff_max_s=60.0, ping_every_s=60.0, ping_patience_s=60.0
)


async def test_a_channel_that_is_closed_takes_no_call() -> None:
    channel = Channel("localhost", 1, times=TIMES, message_bytes_max=10)
    assert channel.get_state() is State.IDLE
    await channel.close()
    assert channel.get_state() is State.SHUTDOWN
    with pytest.raises(grpc.aio.UsageError):
        channel.unary_unary("/some.Service/Call")(b"")
