"""A process with one listener that offers grpc.testing.TestService and reflection.

    python -m tests.conformance.serving [--transport NAME] [--tls FOLDER] [--port N]

FOLDER holds server.pem, chain and key in one, and ca.pem. The port is the first line of the output;
the process ends when its standard input does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import uvloop

from quorate.rpc.health import enable_reflection
from quorate.rpc.tls import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.conformance.servicer import SERVICE, TestService
from tests.conformance.stubs import services
from tests.conformance.transports import GRPCIO, TRANSPORTS, make_listener

HOST = "127.0.0.1"


def server_tls(folder: Path) -> TlsFiles:
    """The certificates of a listener, which asks clients for none."""
    chain = str(folder / "server.pem")
    authorities = str(folder / "ca.pem")
    return TlsFiles(TlsSettings(certificate_chain_file=chain, key_file=chain, ca_file=authorities))


def client_tls(folder: Path) -> TlsFiles:
    """What a client trusts, who has no certificate."""
    return TlsFiles(TlsSettings(ca_file=str(folder / "ca.pem")))


def _add_services(server: Any) -> None:  # noqa: ANN401 - of any transport
    services.add_TestServiceServicer_to_server(TestService(), server)
    enable_reflection(server, SERVICE)


async def serve(transport: str, folder: Path | None, port: int) -> None:
    """Listen until standard input ends."""
    listener = make_listener(transport, _add_services)
    tls = None if folder is None else server_tls(folder)
    bound = listener.bind(HOST, port, tls=tls)
    await listener.start()
    sys.stdout.write(f"{bound}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()
    await listener.stop()


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=TRANSPORTS, default=GRPCIO)
    parser.add_argument("--tls", type=Path, metavar="FOLDER")
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    uvloop.run(serve(arguments.transport, arguments.tls, arguments.port))


if __name__ == "__main__":
    main()
