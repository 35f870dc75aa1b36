"""Server processes that are measured: started, killed, stopped, looked at from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

READY_S: Final = 60.0
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")
_MIB: Final = 1 << 20


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def rss_mib(pid: int) -> float:
    """Resident memory of a process now."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / _MIB
    raise ValueError(f"process {pid} has no VmRSS")


class Members(ABC):
    """The members of one quorum. `name` is what the tables call it."""

    name: str
    settles_s = 1.0

    def __init__(self, root: Path, count: int = 3) -> None:
        self.root = root
        self.count = count
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @abstractmethod
    def command(self, member: int) -> list[str]:
        """The command that starts a member; members count from 0."""

    @abstractmethod
    def address(self, member: int) -> tuple[str, int]:
        """The address of a member for its clients."""

    @abstractmethod
    def find_leader(self) -> int | None:
        """The leader, as far as a member reports one now."""

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def __enter__(self) -> Self:
        for member in range(self.count):
            self.start(member)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    # --- processes --------------------------------------------------------------------------------

    def start(self, member: int) -> None:
        """Start a member that does not run."""
        with (self.root / f"{self.name}-{member}.log").open("ab") as output:
            self._processes[member] = subprocess.Popen(
                self.command(member),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment(),
            )

    def end(self, member: int, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal that ends it, without waiting for that."""
        self._processes[member].send_signal(number)

    def wait(self, member: int) -> None:
        """Return when it has ended."""
        self._processes[member].wait(READY_S)

    def pause(self, member: int) -> None:
        self._processes[member].send_signal(signal.SIGSTOP)

    def resume(self, member: int) -> None:
        self._processes[member].send_signal(signal.SIGCONT)

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def pid(self, member: int) -> int:
        return self._processes[member].pid

    def cpu_s(self) -> float:
        """CPU time of all members."""
        return sum(map(cpu_s, self.pids))

    def rss_mib(self) -> list[float]:
        return [rss_mib(pid) for pid in self.pids]

    def leader(self) -> int:
        """Wait until a leader is known."""
        deadline = time.monotonic() + READY_S
        while (leader := self.find_leader()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name} has no leader; see {self.root}")
            time.sleep(0.05)
        return leader
