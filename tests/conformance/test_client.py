"""Our channels against our listeners, and against grpc-go's interop server."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.conformance.cases import CASES
from tests.conformance.served import ANSWER_S, Address, Served
from tests.conformance.transports import TRANSPORTS
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

every_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="session")
def go_server(programs: Path, folder: Path | None) -> Iterator[Address]:
    """grpc-go's interop server."""
    (port,) = free_ports(1)
    command = [str(programs / "server"), f"-port={port}"]
    if folder is not None:
        pem = folder / "server.pem"
        command += ["-use_tls", f"-tls_cert_file={pem}", f"-tls_key_file={pem}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _await_listener(process, port)
            yield Address(port, folder)
        finally:
            process.kill()


def _await_listener(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + ANSWER_S
    while True:
        try:
            socket.create_connection((HOST, port)).close()
        except OSError:
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.02)
        else:
            return


@every_case
@pytest.mark.parametrize("server", TRANSPORTS)
async def test_our_client_and_our_server(
    case: str, transport: str, server: str, folder: Path | None, listeners: dict[str, Served]
) -> None:
    async with listeners[server].address.connect(transport) as channel:
        await CASES[case](channel)


@pytest.fixture(scope="module")
def listeners(folder: Path | None) -> Iterator[dict[str, Served]]:
    """One listener of each transport: both ends mix."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(Served(name, folder)) for name in TRANSPORTS}


@every_case
async def test_our_client_and_the_server_of_grpc_go(
    case: str, transport: str, go_server: Address
) -> None:
    async with go_server.connect(transport) as channel:
        await CASES[case](channel)
