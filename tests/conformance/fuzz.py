"""Invalid frames, against a listener in a process of its own.

    python -m tests.conformance.fuzz [--transport NAME] [--tls] [--frames N] [--seconds N]

Random bytes, mutations of recorded conversations, and frames by a grammar; before the preface (or
the handshake of TLS) and after it. The process has to live, to answer a good call after each so
many conversations, and to stay below a bound of memory; what became of all so far is told every
half a minute. The clock draws where it starts, unless --start draws the same again; --seconds 0 has
no end but that of --frames. The exit status is 1 when anything was not as it has to be.

grpcio has a fault that frames find: a path that is not UTF-8 ends its listener, while the process
lives on. There the listener is restarted, and the number of restarts is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import ssl
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import grpc.aio

from tests.conformance.grammar import Grammar
from tests.conformance.recordings import client_hello, mutate, record
from tests.conformance.served import Served, ask, write_certificates
from tests.conformance.serving import HOST
from tests.conformance.transports import GRPCIO, OURS, TRANSPORTS
from tests.integration.raw_http2 import PREFACE, SETTINGS, frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Above what it held after the first conversations, at any time.
GROWTH_MIB: Final = 64.0
CONVERSATIONS: Final = 50
FRAMES_MAX: Final = 200
BURST: Final = 10
TOLD_EVERY_S: Final = 30.0
_STUCK_S: Final = 5.0
# What grpcio writes when it has ended itself.
_GRPCIO_FAULT: Final = "in _server_main_loop\nUnicodeDecodeError"


@dataclass(slots=True)
class Tally:
    """The frames sent so far, and the results."""

    frames: int = 0
    conversations: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    stuck: int = 0
    restarts: int = 0
    longest_turn_ms: float = 0.0
    longest_turn: str = ""
    peak_mib: float = 0.0
    base_mib: float = 0.0

    def words(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.conversations.items()))
        return (
            f"{self.frames} frames; conversations: {kinds}; {self.ended} ended by the listener, "
            f"{self.stuck} stuck; {self.base_mib:.0f} MiB at first, {self.peak_mib:.0f} at most; "
            f"{self.restarts} restarts; longest turn {self.longest_turn_ms:.1f} ms of CPU, "
            f"{self.longest_turn}"
        )

    def look(self, served: Served) -> str | None:
        """Note what a listener holds and how long it took; what is wrong with that."""
        self.base_mib = self.base_mib or served.mib
        self.peak_mib = max(self.peak_mib, served.peak_mib)
        took, name = served.longest_turn()
        if took > self.longest_turn_ms:
            self.longest_turn_ms, self.longest_turn = took, name
        if self.peak_mib - self.base_mib > GROWTH_MIB:
            held = f"it has held {self.peak_mib:.0f} MiB"
            return f"{held}, more than {GROWTH_MIB:.0f} above the first"
        return None


class Fuzzer:
    """Conversations of one start."""

    def __init__(self, folder: Path | None, recorded: list[list[bytes]], start: int) -> None:
        self._random = Random(start)
        self._recorded = recorded
        self._hello = b"" if folder is None else client_hello(folder)
        self._tls = None
        if folder is not None:
            self._tls = ssl.create_default_context(cafile=folder / "ca.pem")
            self._tls.set_alpn_protocols(["h2"])
        self.tally = Tally()

    def talk(self, port: int, conversations: int) -> None:
        """So many conversations with the server that listens there, one after another."""
        for _ in range(conversations):
            kind, is_after = self._random.choices(
                (("random", False), ("random", True), ("mutated", True), ("grammar", True)),
                (1, 1, 3, 5),
            )[0]
            self.tally.conversations[kind if is_after else "before"] += 1
            with (
                suppress(OSError),
                socket.create_connection((HOST, port)) as raw,
            ):
                raw.settimeout(_STUCK_S)
                if not is_after:
                    self._send(raw, self._early())
                elif self._tls is None:
                    self._send(raw, self._late(kind))
                else:
                    with self._tls.wrap_socket(raw, server_hostname=HOST) as wrapped:
                        self._send(wrapped, self._late(kind))

    def _early(self) -> Iterator[bytes]:
        """In place of a preface, or of a handshake."""
        right = self._hello or PREFACE
        if self._random.randrange(2):
            changed = bytearray(right)
            changed[self._random.randrange(len(changed))] ^= 1 << self._random.randrange(8)
            yield bytes(changed[: self._random.randrange(1, len(changed) + 1)])
        yield self._random.randbytes(self._random.randrange(1, 300))

    def _late(self, kind: str) -> Iterator[bytes]:
        yield PREFACE
        if kind == "mutated":
            yield from mutate(self._random.choice(self._recorded), self._random)
            return
        yield frame(SETTINGS, 0, 0, b"")
        if kind == "random":
            for _ in range(self._random.randrange(1, 10)):
                yield self._random.randbytes(self._random.randrange(1, 100))
            return
        grammar = Grammar(self._random)
        for _ in range(self._random.randrange(1, FRAMES_MAX)):
            yield grammar.frame()

    def _send(self, to: socket.socket, pieces: Iterator[bytes]) -> None:
        """As many of them as the listener takes before it ends the connection."""
        burst: list[bytes] = []
        try:
            for piece in pieces:
                burst.append(piece)
                if len(burst) == BURST:
                    self._send_burst(to, burst)
            self._send_burst(to, burst)
        except TimeoutError:
            self.tally.stuck += 1
        except OSError:
            self.tally.ended += 1

    def _send_burst(self, to: socket.socket, burst: list[bytes]) -> None:
        to.sendall(b"".join(burst))
        self.tally.frames += len(burst)
        burst.clear()
        to.settimeout(0)
        try:
            # What it says is of no interest, but that it can say it.
            while to.recv(65536):
                pass
            raise ConnectionResetError
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        finally:
            to.settimeout(_STUCK_S)


async def fuzz(
    transport: str,
    *,
    has_tls: bool,
    frames: int,
    seconds: float,
    start: int,
    tell: Callable[[Tally], None] = lambda _: None,
) -> tuple[Tally, str | None]:
    """The frames sent, and the error or None. `tell` receives progress on the way."""
    began = told = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch, Served(GRPCIO) as plain:
        recorded = await record(plain)
        folder = write_certificates(Path(scratch)) if has_tls else None
        fuzzer = Fuzzer(folder, recorded, start)
        tally = fuzzer.tally

        def is_over() -> bool:
            return tally.frames >= frames or 0 < seconds <= time.monotonic() - began

        while not is_over():
            tally.base_mib = tally.peak_mib = 0
            with Served(transport, folder, notes_turns=True) as served:
                while not is_over():
                    await asyncio.to_thread(fuzzer.talk, served.address.port, CONVERSATIONS)
                    problem = await _look(served, transport, tally)
                    if problem is not None and _is_known(served, transport):
                        tally.restarts += 1
                        break
                    if problem is not None:
                        return tally, f"{problem}: {served.log}"
                    if time.monotonic() - told > TOLD_EVERY_S:
                        told = time.monotonic()
                        tell(tally)
    return tally, None


def _is_known(served: Served, transport: str) -> bool:
    return transport == GRPCIO and _GRPCIO_FAULT in served.log


async def _look(served: Served, transport: str, tally: Tally) -> str | None:
    """True if the listener lives, answers, and is of its size."""
    if not served.is_alive:
        return "the process has ended"
    if _is_known(served, transport):
        return "grpcio has ended its listener"
    try:
        async with served.address.connect(transport) as channel:
            await ask(channel)
    except grpc.aio.AioRpcError as error:
        return f"a good call has failed: {error.details()}"
    return tally.look(served)


def main() -> int:
    """Fuzz as the arguments say; the exit status is 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--start", type=int, default=time.time_ns())
    parser.add_argument("--transport", choices=TRANSPORTS, default=min(OURS))
    given = parser.parse_args()
    _tell(f"start {given.start}")
    tally, problem = asyncio.run(
        fuzz(
            given.transport,
            has_tls=given.tls,
            frames=given.frames,
            seconds=given.seconds,
            start=given.start,
            tell=lambda tally: _tell(tally.words()),
        )
    )
    _tell(f"{tally.words()}\n{problem or 'all as it has to be'}")
    return 0 if problem is None else 1


def _tell(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
