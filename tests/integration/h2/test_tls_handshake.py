"""TLS handshakes of many clients that send at one moment, on both event loops."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import uvloop

from quorate.h2 import fair_queue, tls_handshake
from quorate.h2.fair_queue import FairQueue
from quorate.h2.server.server import Server
from quorate.h2.tls_alerts import AlertingSession
from tests.integration.h2.test_connections import WAIT_S, tls_context, trusting
from tests.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY = 24
OTHER = "127.0.0.2"
STEP_S = 0.005
RUNS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


class Client:
    """A client whose messages the test sends."""

    def __init__(self, port: int, context: ssl.SSLContext, source: str = HOST) -> None:
        self.socket = socket.create_connection((HOST, port), source_address=(source, 0))
        self.socket.setblocking(False)  # noqa: FBT003
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing)

    def step(self) -> bool:
        """Continue the handshake, and send its output; whether it is done."""
        is_done = True
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            is_done = False
        assert self.socket.send(said := self._outgoing.read()) == len(said)
        return is_done

    async def finish(self) -> None:
        """Do the rest of the handshake, and wait for the server's first frame."""
        while not self.step():
            await self._receive()
        while True:
            try:
                assert self._session.read(9)[3] == 4, "the first frame is SETTINGS"
            except ssl.SSLWantReadError:
                await self._receive()
            else:
                return

    async def _receive(self) -> None:
        data = await asyncio.get_running_loop().sock_recv(self.socket, 65536)
        assert data, "the server has closed the connection"
        self._incoming.write(data)


class Computed:
    """The steps of the server's handshakes, each of which takes STEP_S of the queue's time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.iteration = 0
        self.begun = 0
        # The iteration and the client's address of each step that had something to read.
        self.steps: list[tuple[int, str]] = []
        self.changed = asyncio.Event()
        original = AlertingSession.do_handshake

        def do_handshake(session: Any) -> None:  # noqa: ANN401
            self.begun += 1
            self.changed.set()
            if self.begun > MANY + 1:
                self.steps.append((self.iteration, session._accepted.getpeername()[0]))
                self.now_s += STEP_S
            original(session)

        monkeypatch.setattr(AlertingSession, "do_handshake", do_handshake)
        loop = asyncio.get_running_loop()
        queue = FairQueue(clock=lambda: self.now_s)
        monkeypatch.setitem(fair_queue._QUEUES, loop, queue)
        loop.call_soon(self._count)

    def _count(self) -> None:
        self.iteration += 1
        asyncio.get_running_loop().call_soon(self._count)

    async def until(self, is_met: Callable[[], bool]) -> None:
        while not is_met():
            self.changed.clear()
            await self.changed.wait()


@RUNS
def test_first_messages_of_many_clients_are_computed_with_in_turns(
    run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tls_context(tmp_path)
    trusts = trusting(context)
    assert trusts is not None

    async def main() -> None:
        computed = Computed(monkeypatch)
        server = Server((), received_bytes_max=1000, connections_max=1000)
        port = server.add_port(f"{HOST}:0", context)
        await server.start()
        async with asyncio.timeout(WAIT_S), AsyncExitStack() as stack:
            stack.push_async_callback(server.stop, None)
            clients = [Client(port, trusts) for _ in range(MANY)]
            clients.append(Client(port, trusts, OTHER))
            for one in clients:
                stack.callback(one.socket.close)
            await computed.until(lambda: computed.begun == MANY + 1)
            for one in clients:
                assert not one.step()
            await computed.until(lambda: len(computed.steps) >= MANY + 1)
            first = computed.steps[: MANY + 1]
            # One client's turn is one step; another client that used little has one in parallel.
            assert max(Counter(iteration for iteration, _ in first).values()) <= 2
            assert OTHER in [address for _, address in first[: MANY // 2]]
            await asyncio.gather(*(one.finish() for one in clients))

    run(main())


@RUNS
def test_a_handshake_that_is_not_done_in_time_is_ended(
    run: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = tls_context(tmp_path)
    trusts = trusting(context)
    assert trusts is not None
    monkeypatch.setattr(tls_handshake, "PREFACE_S", 0.05)

    async def main() -> None:
        server = Server((), received_bytes_max=1000, connections_max=1000)
        port = server.add_port(f"{HOST}:0", context)
        await server.start()
        async with asyncio.timeout(WAIT_S):
            clients = [Client(port, trusts) for _ in range(2)]
            # One says nothing, the other one begins.
            assert not clients[0].step()
            for one in clients:
                with one.socket:
                    while await asyncio.get_running_loop().sock_recv(one.socket, 65536):
                        continue
            while server._handshakes.tasks:
                await asyncio.wait(server._handshakes.tasks)
        assert server._stats.failed_handshakes == 2
        await server.stop(None)

    run(main())
