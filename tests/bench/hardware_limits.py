"""Limits of the machine, measured in the same run: a flush, and a message there and back.

A commit is at least one message from the client and back, one from a follower and back, and one
flush of a disk that three members share; the rest is ours.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Final

import grpc.aio
import uvloop

from tests.bench import payloads
from tests.bench.commit_load import percentile
from tests.bench.gen.raw.v1 import raw_pb2 as pb
from tests.bench.gen.raw.v1 import raw_pb2_grpc
from tests.bench.http2_client import Connection, StreamLoad
from tests.bench.processes import READY_S
from tests.bench.quorate_cluster import is_listening
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_FLUSHES: Final = 500
_FLUSH_BYTES: Final = 200
_ROUND_S: Final = 1.0


def flush_us(folder: Path, members: int = 3) -> float:
    """The median time of fdatasync after a small append, by so many processes in parallel."""
    script = (
        "import os, sys, time\n"
        "file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "times = []\n"
        f"for _ in range({_FLUSHES}):\n"
        f"    os.write(file, bytes({_FLUSH_BYTES}))\n"
        "    began = time.perf_counter()\n"
        "    os.fdatasync(file)\n"
        "    times.append(time.perf_counter() - began)\n"
        "print(sorted(times)[len(times) // 2] * 1e6)\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(folder / f"flush-{number}")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(members)
    ]
    return sum(float(process.communicate(timeout=READY_S)[0]) for process in processes) / members


def echo_us() -> tuple[float, float]:
    """A message there and back on a stream: from the generator, and between two Python processes.

    The server is a process of its own with nothing behind it, on the same stack as ours.
    """
    (port,) = free_ports(1)
    server = subprocess.Popen([sys.executable, "-m", "tests.bench.hardware_limits", str(port)])
    try:
        deadline = time.monotonic() + READY_S
        while not is_listening((HOST, port)):
            if time.monotonic() > deadline:
                raise TimeoutError("the echo server does not listen")
            time.sleep(0.01)
        load = StreamLoad(
            [Connection(HOST, port)],
            payloads.APPEND_PATH,
            payloads.appends(1),
            payloads.last_append,
            1,
        )
        load.run(_ROUND_S / 4)
        load.run(_ROUND_S)
        latencies = sorted(load.latencies_ns)
        load.finish()
        return percentile(latencies, 0.5) / 1000, uvloop.run(_echo_client(port))
    finally:
        server.kill()
        server.wait()


async def _echo_client(port: int) -> float:
    times = []
    async with grpc.aio.insecure_channel(f"{HOST}:{port}") as channel:
        stub: raw_pb2_grpc.RawLogAsyncStub = raw_pb2_grpc.RawLogStub(channel)
        call = stub.Append()
        deadline = time.perf_counter() + _ROUND_S
        while (began := time.perf_counter()) < deadline:
            await call.write(pb.AppendRequest(records=[bytes(payloads.VALUE_BYTES)]))
            await call.read()
            times.append(int((time.perf_counter() - began) * 1e9))
        call.cancel()
    return percentile(sorted(times), 0.5) / 1000


class _Echo(raw_pb2_grpc.RawLogServicer):
    async def Append(
        self,
        request_iterator: AsyncIterator[pb.AppendRequest],
        context: grpc.aio.ServicerContext[pb.AppendRequest, pb.AppendResponse],
    ) -> AsyncIterator[pb.AppendResponse]:
        async for request in request_iterator:
            yield pb.AppendResponse(last_sequence=request.sequence)

    async def AppendOnce(
        self,
        request: pb.AppendRequest,
        context: grpc.aio.ServicerContext[pb.AppendRequest, pb.AppendResponse],
    ) -> pb.AppendResponse:
        return pb.AppendResponse(last_sequence=request.sequence)

    async def RunLoad(
        self,
        request: pb.RunLoadRequest,
        context: grpc.aio.ServicerContext[pb.RunLoadRequest, pb.RunLoadResponse],
    ) -> pb.RunLoadResponse:
        return pb.RunLoadResponse()


async def _serve(port: int) -> None:
    server = grpc.aio.server()
    raw_pb2_grpc.add_RawLogServicer_to_server(_Echo(), server)
    server.add_insecure_port(f"{HOST}:{port}")
    await server.start()
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - a parent that has exited causes no event
        await asyncio.sleep(1)


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
