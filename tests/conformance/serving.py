"""A process with one listener that offers grpc.testing.TestService and reflection.

    python -m tests.conformance.serving [--transport NAME] [--tls FOLDER] [--turns]

FOLDER holds server.pem, chain and key in one, and ca.pem. The port is the first line of the output;
the process ends when its standard input does. With --turns the second line is what the longest turn
of the loop has taken, in milliseconds of CPU time, and whose it was; asyncio's own loop runs it
then, since the callbacks of uvloop cannot be got at.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from quorate.rpc.health import enable_reflection
from quorate.rpc.tls import TlsFiles
from quorate.settings.tls import TlsSettings
from tests.conformance.servicer import SERVICE, TestService
from tests.conformance.stubs import services
from tests.conformance.transports import GRPCIO, TRANSPORTS, make_listener

if TYPE_CHECKING:
    from collections.abc import Callable

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


def note_turns() -> Callable[[], str]:
    """What the longest callback of a loop will have taken, in milliseconds, and its name."""
    run: Any = asyncio.Handle._run
    longest_ns, longest = 0, ""

    def noting_run(handle: Any) -> None:  # noqa: ANN401 - asyncio's own
        nonlocal longest_ns, longest
        callback = handle._callback
        begun_ns = time.thread_time_ns()
        run(handle)
        took_ns = time.thread_time_ns() - begun_ns
        if took_ns > longest_ns:
            longest_ns, longest = took_ns, repr(getattr(callback, "__self__", callback))

    asyncio.Handle._run = noting_run  # type: ignore[assignment, method-assign]
    return lambda: f"{longest_ns / 1e6:.1f} {longest}"


async def serve(transport: str, folder: Path | None, *, notes_turns: bool) -> None:
    """Listen until standard input ends."""
    listener = make_listener(transport, _add_services)
    tls = None if folder is None else server_tls(folder)
    bound = listener.bind(HOST, 0, tls=tls)
    await listener.start()
    sys.stdout.write(f"{bound}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    longest = note_turns() if notes_turns else None
    await ended.wait()
    await listener.stop()
    if longest is not None:
        sys.stdout.write(f"{longest()}\n")


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=TRANSPORTS, default=GRPCIO)
    parser.add_argument("--tls", type=Path, metavar="FOLDER")
    parser.add_argument("--turns", action="store_true")
    arguments = parser.parse_args()
    serving = serve(arguments.transport, arguments.tls, notes_turns=arguments.turns)
    if arguments.turns:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


if __name__ == "__main__":
    main()
