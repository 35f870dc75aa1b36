"""A listener in a process of its own, which a test may harm: looked at from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tests.bench.processes import rss_mib
from tests.certificates import Authority
from tests.conformance.serving import HOST, client_tls
from tests.conformance.stubs import messages, services
from tests.conformance.transports import GRPCIO, connect

if TYPE_CHECKING:
    from types import TracebackType

ROOT: Final = Path(__file__).resolve().parent.parent.parent
# Much more than any answer takes, on a machine that is busy with something else.
ANSWER_S: Final = 60.0
_LOG_BYTES: Final = 64 * 1024


def write_certificates(folder: Path) -> Path:
    """An authority, and a certificate of it for a server on loopback."""
    authority = Authority()
    authority.leaf("server").write(folder / "server.pem")
    (folder / "ca.pem").write_bytes(authority.pem)
    return folder


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a listener. `folder` holds the certificates, None is plaintext."""

    port: int
    folder: Path | None

    def connect(self, transport: str = GRPCIO) -> Any:  # noqa: ANN401 - a channel of any transport
        """A channel to it."""
        tls = None if self.folder is None else client_tls(self.folder)
        return connect(transport, HOST, self.port, tls=tls)


class Served:
    """The process, from its start to its end."""

    def __init__(
        self, transport: str, folder: Path | None = None, *, notes_turns: bool = False
    ) -> None:
        self._command = [sys.executable, "-m", "tests.conformance.serving"]
        self._command += ["--transport", transport]
        if folder is not None:
            self._command += ["--tls", str(folder)]
        if notes_turns:
            self._command.append("--turns")
        self._folder = folder

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command,
            cwd=ROOT,
            env=os.environ | {"GRPC_VERBOSITY": "none"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise RuntimeError(f"the listener ended with status {status}: {self.log}")
        self.address = Address(int(line), self._folder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    @property
    def log(self) -> str:
        """The newest part of its standard error."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), _LOG_BYTES, max(0, size - _LOG_BYTES))
        return tail.decode(errors="replace")

    @property
    def is_alive(self) -> bool:
        """True if the process runs."""
        return self._process.poll() is None

    def longest_turn(self) -> tuple[float, str]:
        """The longest turn of its loop, in milliseconds of CPU, and the name of its callback."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        took, _, name = self._process.stdout.readline().strip().partition(" ")
        return float(took), name

    @property
    def mib(self) -> float:
        """The memory that it holds, in MiB."""
        return rss_mib(self._process.pid)

    @property
    def peak_mib(self) -> float:
        """The most that it held since the peak was forgotten."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise ValueError("the process has no peak")

    def forget_peak(self) -> None:
        """Reset the peak."""
        # The word of the kernel for this.
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")


class Running:
    """Listeners by what they are like, each started when it is first asked for.

    In a random order a fixture with parameters would start one for each change of them.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._served: dict[tuple[str, Path | None], Served] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._stack.close()

    def get(self, transport: str, folder: Path | None) -> Served:
        """The one of this transport, with these certificates; another where a test has ended it."""
        served = self._served.get((transport, folder))
        if served is None or not served.is_alive:
            served = self._stack.enter_context(Served(transport, folder))
            self._served[transport, folder] = served
        return served


async def ask(channel: Any, size: int = 10) -> None:  # noqa: ANN401 - of any transport
    """One good call; fails when the answer is not what was asked for."""
    stub = services.TestServiceStub(channel)
    request = messages.SimpleRequest(response_size=size, payload=messages.Payload(body=bytes(size)))
    response = await stub.UnaryCall(request, timeout=ANSWER_S, wait_for_ready=True)
    assert len(response.payload.body) == size
