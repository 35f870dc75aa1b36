"""A client that asks for too much, says nothing, or lies.

    python -m tests.chaos.abusive_client HOST PORT SECONDS SEED

All of it is bounded by time and count, so that what is tried are the bounds of the controller and
not those of the machine. Answers do not matter here: that others are served all the while does.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final

import grpc.aio

from quorate.rpc.channels import open_channel
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.raft.v1 import raft_pb2, raft_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONTROLLER: Final = "/quorate.controller.v1.Controller"
RAFT: Final = "/quorate.raft.v1.Raft"
NAMES: Final = 100_000
GARBAGE_BYTES: Final = 1 << 20
CONNECTIONS: Final = 100
PARKED: Final = 200
OBSERVERS: Final = 50
PAUSE_S: Final = 0.05
CALL_S: Final = 2.0
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")


class Abuser:
    """One client of one controller."""

    def __init__(self, host: str, port: int, random: Random) -> None:
        self._address = host, port
        self._random = random
        self._channel = open_channel(host, port)
        self._cluster_id = ""
        self._open: list[asyncio.StreamWriter] = []

    async def run(self, seconds: float) -> None:
        """Run until the time is over; then release everything."""
        ways: list[Callable[[], Awaitable[None]]] = [
            self.too_many_names,
            self.garbage,
            self.halves,
            self.parked_reads,
            self.invented_observers,
            self.extreme_votes,
        ]
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                await self._random.choice(ways)()
                await asyncio.sleep(PAUSE_S)
        finally:
            for writer in self._open:
                writer.close()
            await self._channel.close()

    async def _send(self, method: str, data: bytes, timeout_s: float = CALL_S) -> None:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(method)
        with suppress(grpc.aio.AioRpcError):
            await call(data, timeout=timeout_s)

    async def too_many_names(self) -> None:
        """As many as fit into a message of ordinary size, all of them empty."""
        request = pb.ReadRequest(describe_topics=pb.DescribeTopics(names=[""] * NAMES))
        await self._send(f"{CONTROLLER}/Read", request.SerializeToString())

    async def garbage(self) -> None:
        """Send bytes that are not a message, to a call that changes things."""
        data = self._random.randbytes(self._random.randrange(1, GARBAGE_BYTES))
        await self._send(f"{CONTROLLER}/Write", data)

    async def halves(self) -> None:
        """Connections that begin as they should and then say nothing."""
        while len(self._open) < CONNECTIONS:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(*self._address)
                writer.write(PREFACE[: self._random.randrange(len(PREFACE) + 1)])
                self._open.append(writer)
                continue
            return

    async def parked_reads(self) -> None:
        """Reads at an offset that never comes."""
        request = pb.ReadRequest(min_offset=1 << 40, list_topics=pb.ListTopics())
        data = request.SerializeToString()
        await asyncio.gather(*(self._send(f"{CONTROLLER}/Read", data, 1.0) for _ in range(PARKED)))

    async def invented_observers(self) -> None:
        """Send Fetches of replicas that do not exist."""
        await self._learn_cluster()
        for _ in range(OBSERVERS):
            request = raft_pb2.FetchRequest(
                cluster_id=self._cluster_id,
                replica_id=self._random.randrange(1000, 1 << 31),
                replica_directory_id=self._random.randbytes(16),
            )
            await self._send(f"{RAFT}/FetchOnce", request.SerializeToString())

    async def extreme_votes(self) -> None:
        """Request the last epoch that there is, as a replica that is not a voter."""
        await self._learn_cluster()
        request = raft_pb2.VoteRequest(
            cluster_id=self._cluster_id,
            voter_id=1,
            replica_id=1000,
            replica_directory_id=self._random.randbytes(16),
            replica_epoch=(1 << 31) - 1,
        )
        await self._send(f"{RAFT}/Vote", request.SerializeToString())

    async def _learn_cluster(self) -> None:
        with suppress(grpc.aio.AioRpcError):
            stub = raft_pb2_grpc.RaftStub(self._channel)
            answer = await stub.ApiVersions(raft_pb2.ApiVersionsRequest(), timeout=CALL_S)
            self._cluster_id = answer.cluster_id


async def main(host: str, port: str, seconds: str, seed: str) -> None:
    """Abuse that controller for so long."""
    await Abuser(host, int(port), Random(int(seed))).run(float(seconds))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
