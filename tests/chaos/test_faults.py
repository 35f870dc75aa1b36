"""The tools of the nemesis do what they say: cuts, full and slow disks, wrong clocks and names."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from quorate.cli.local_quorum import NodePlan
from tests.chaos.disks import Disk, compile_shim
from tests.chaos.log_reader import LogReader
from tests.chaos.names import Names, name_of
from tests.chaos.network import Network

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORT = 9000
RECEIVE = """
import socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("", int(sys.argv[1])))
print("ready", flush=True)
print(receiver.recv(10).decode())
"""
SEND = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.sendto(sys.argv[3].encode(), (sys.argv[1], int(sys.argv[2])))
"""
RESOLVE = "import socket, sys; print(socket.gethostbyname(sys.argv[1]))"
CONNECT = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
print("ready", flush=True)
print(listener.accept()[1][0])
"""
WRITE = """
import sys
print("ready", flush=True)
sys.stdin.readline()
print("a line", file=sys.stderr, flush=True)
print("written", flush=True)
"""
FLUSH = """
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
begin = time.monotonic()
os.fdatasync(file)
print(time.monotonic() - begin, time.time())
"""

pytestmark = pytest.mark.usefixtures("machine")


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network([1, 2, 3])
    yield network
    network.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk(plan(tmp_path), compile_shim(tmp_path))
    yield disk
    disk.close(keep=None)


def plan(root: Path) -> NodePlan:
    return NodePlan(1, PORT, root)


def arrives(network: Network, source: int, target: int, *, at: str | None = None) -> bool:
    """True if a datagram gets from one node to the other, at one of its addresses.

    What the other one tells itself afterwards comes second, or alone.
    """
    to = [at or network.address(target), str(PORT)]
    receive = [*network.enter(target), sys.executable, "-c", RECEIVE, to[1]]
    with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "ready\n"
        send = [*network.enter(source), sys.executable, "-c", SEND, *to, "message"]
        # To an address that is gone the kernel may refuse to send at all.
        subprocess.run(send, check=at is None, stderr=subprocess.DEVNULL if at else None)
        enough = [sys.executable, "-c", SEND, "127.0.0.1", to[1], "nothing"]
        subprocess.run([*network.enter(target), *enough], check=True)
        return receiver.stdout.readline() == "message\n"


def test_a_cut_drops_one_direction_of_one_link_until_it_heals(network: Network) -> None:
    assert arrives(network, 1, 2)
    network.cut([(1, 2)])
    pairs = [(1, 2), (2, 1), (1, 3), (3, 2)]
    assert [arrives(network, *pair) for pair in pairs] == [False, True, True, True]
    network.heal()
    assert arrives(network, 1, 2)


def test_a_node_that_moves_is_reached_at_its_new_address_and_by_clients_as_before(
    network: Network,
) -> None:
    old = network.told_address(1)
    assert arrives(network, 2, 1, at=old)
    network.move(1)
    new = network.told_address(1)
    assert new != old
    found = [arrives(network, 2, 1, at=address) for address in (new, network.address(1), old)]
    assert found == [True, True, False]
    network.cut([(2, 1)])
    assert not arrives(network, 2, 1, at=new)


def test_a_full_disk_refuses_bytes_until_it_is_drained(tmp_path: Path, disk: Disk) -> None:
    target = plan(tmp_path).metadata_dir / "file"
    disk.fill()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        target.write_bytes(b"x" * 8192)
    disk.drain()
    target.write_bytes(b"x" * 8192)


def test_flushes_are_slow_and_the_clock_wrong_as_long_as_it_is_said(
    tmp_path: Path, disk: Disk
) -> None:
    target = plan(tmp_path).metadata_dir / "file"

    def flush() -> tuple[float, float]:
        done = subprocess.run(
            [sys.executable, "-c", FLUSH, str(target)],
            env=os.environ | disk.environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        duration, wall = map(float, done.stdout.split())
        return duration, wall - time.time()

    disk.slow_down(200.0)
    disk.skew(3600.0)
    duration, ahead = flush()
    assert duration >= 0.2
    assert 3500.0 < ahead <= 3600.0
    disk.slow_down(0.0)
    disk.skew(0.0)
    assert -100.0 < flush()[1] <= 0.0


async def test_flushes_do_not_return_until_they_may(tmp_path: Path, disk: Disk) -> None:
    target = plan(tmp_path).metadata_dir / "file"
    disk.hang()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", FLUSH, str(target)),
        env=os.environ | disk.environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), 1.0)
    disk.release()
    assert await asyncio.wait_for(process.wait(), 20) == 0


def test_a_guest_comes_to_nodes_from_an_address_of_its_own(network: Network) -> None:
    listen = [*network.enter(2), sys.executable, "-c", CONNECT, str(PORT)]
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        source = network.guest, 0
        with socket.create_connection((network.address(2), PORT), source_address=source):
            assert listener.stdout.readline() == f"{network.guest}\n"


def test_names_lead_one_node_elsewhere_until_they_are_right(
    tmp_path: Path, network: Network
) -> None:
    told = [network.told_address(node) for node in network.nodes]
    names = Names(tmp_path, network.nodes, network.told_addresses())

    def found(node: int) -> list[str]:
        return [
            subprocess.run(
                [*names.enter(node), sys.executable, "-c", RESOLVE, name_of(address)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            for address in told
        ]

    try:
        assert found(1) == told
        names.mislead(1, {told[1]: told[2]})
        assert [found(1), found(2)] == [[told[0], told[2], told[2]], told]
        assert socket.getaddrinfo(name_of(told[1]), PORT)[0][4][0] == told[1]
        names.set_right(1)
        assert found(1) == told
    finally:
        names.close()


async def test_a_reader_that_stands_still_holds_up_its_writer_until_it_goes_on(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    reader = await LogReader.start(log)
    writer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WRITE),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=reader.output,
    )
    reader.handed_on()
    assert writer.stdin is not None
    assert writer.stdout is not None
    assert await writer.stdout.readline() == b"ready\n"
    reader.stand_still(writer.pid)
    writer.stdin.write(b"go\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(writer.wait()), 1.0)
    reader.go_on()
    assert await writer.stdout.readline() == b"written\n"
    assert await writer.wait() == 0
    await reader.end()
    assert log.read_text().strip() == "a line"
