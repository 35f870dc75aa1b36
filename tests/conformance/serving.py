"""A process with one listener that offers grpc.testing.TestService and reflection.

    python -m tests.conformance.serving [--transport NAME] [--tls FOLDER] [--turns]

FOLDER holds server.pem, chain and key in one, and ca.pem. The port is the first line of the output;
the process ends when its standard input does. With --turns each line of that is answered by what
the longest turn of the loop has taken so far, in milliseconds of CPU time, and whose it was;
asyncio's own loop runs it then, since the callbacks of uvloop cannot be got at, and no answer has
more than 1 MiB: what it takes to make a larger one is protobuf's time, and no frame's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from quorate.rpc.health import enable_reflection
from quorate.rpc.security.tls_files import TlsFiles
from quorate.server.memory.gc_tuning import freeze_heap
from quorate.settings.tls import TlsSettings
from tests.conformance.servicer import RESPONSE_BYTES_MAX, SERVICE, TestService
from tests.conformance.stubs import services
from tests.conformance.transports import GRPCIO, TRANSPORTS, make_listener

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
_QUICK_BYTES_MAX = 1024 * 1024


def server_tls(folder: Path) -> TlsFiles:
    """The certificates of a listener, which asks clients for none."""
    chain = str(folder / "server.pem")
    authorities = str(folder / "ca.pem")
    return TlsFiles(TlsSettings(certificate_chain_file=chain, key_file=chain, ca_file=authorities))


def client_tls(folder: Path) -> TlsFiles:
    """The TLS files of a client without a certificate."""
    return TlsFiles(TlsSettings(ca_file=str(folder / "ca.pem")))


def _add_services(response_bytes_max: int, server: Any) -> None:  # noqa: ANN401 - of any transport
    services.add_TestServiceServicer_to_server(TestService(response_bytes_max), server)
    enable_reflection(server, SERVICE)


def note_turns() -> Callable[[], str]:
    """A function for the longest callback of a loop so far, in milliseconds, and its name."""
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
    bytes_max = _QUICK_BYTES_MAX if notes_turns else RESPONSE_BYTES_MAX
    listener = make_listener(transport, partial(_add_services, bytes_max))
    tls = None if folder is None else server_tls(folder)
    bound = listener.bind(HOST, 0, tls=tls)
    await listener.start()
    _tell(str(bound))
    longest = note_turns() if notes_turns else lambda: ""
    ended = asyncio.Event()
    # As in a controller: a pass over all that was imported would be the longest turn.
    freeze_heap()

    def asked() -> None:
        if os.read(sys.stdin.fileno(), 1):
            _tell(longest())
        else:
            ended.set()

    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), asked)
    await ended.wait()
    await listener.stop()


def _tell(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


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
