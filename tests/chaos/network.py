"""Network namespaces, one a node, and a hub that routes between them; any direction can be cut.

A cut is a blackhole rule in the hub's routing policy, by source and destination: packets of that
one direction vanish silently, as on a broken link, while established connections and other
nodes stay untouched. Proxies would not do: all peers of a node find it under one address, so a
proxy could not tell who calls; and a proxy acknowledges bytes that never arrive. Nothing is needed
but root and iproute2. This process reaches every node always, as clients would that see more of the
quorum than its members do.

A node has two addresses. Clients reach it by one, permanently; the other, which its peers use,
changes when it moves, and the old one has no listener any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# For tests of networks (RFC 2544): no real network has these addresses.
PREFIX: Final = "198.18"
NETWORKS_MAX: Final = 200
# How many addresses a node takes in turn.
PLACES: Final = 10
# The last byte of the address of clients that must not share one with the others.
GUEST: Final = 254
NAMED: Final = "qchaos"
NAMESPACES: Final = Path("/run/netns")
# Forward, and do not drop a packet because the way back is cut.
ROUTING: Final = ("1 > ip_forward", "0 > conf/all/rp_filter", "0 > conf/default/rp_filter")


class NetworkError(Exception):
    """The kernel or its tools refused; the message is theirs."""


def run(*command: str) -> str:
    """Run a tool; its stdout. Raises NetworkError."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def missing() -> str | None:
    """The reason why this machine cannot run chaos, or None."""
    for tool in ("ip", "nsenter", "unshare", "setpriv", "gcc", "mount"):
        if shutil.which(tool) is None:
            packages = "iproute2 util-linux mount gcc libc6-dev"
            return f"{tool} is not installed: apt-get install {packages}"
    if os.geteuid() != 0:
        return "network namespaces and mounts need root: sudo make chaos"
    try:
        sweep()
        name = f"{NAMED}-{os.getpid()}-try"
        run("ip", "netns", "add", name)
        run("ip", "netns", "del", name)
    except NetworkError as error:
        return f"{error}: run in a container with --privileged, or on the host, as root"
    return None


def sweep() -> None:
    """Take away what test processes that were killed have left."""
    with suppress(FileNotFoundError):
        for name in sorted(path.name for path in NAMESPACES.iterdir()):
            if name.startswith(f"{NAMED}-") and not Path(f"/proc/{name.split('-')[1]}").exists():
                run("ip", "netns", "del", name)


class Network:
    """Namespaces for these nodes. `close` takes everything away."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.nodes = tuple(nodes)
        self.blocked: set[tuple[int, int]] = set()
        self._moves = dict.fromkeys(nodes, 0)
        self._name = f"{NAMED}-{os.getpid()}"
        self._hub = f"{self._name}-hub"
        self._number = self._claim()
        try:
            for node in nodes:
                self._add(node)
        except NetworkError:
            self.close()
            raise

    def _claim(self) -> int:
        """A number that no other run on this machine has, with a link between hub and host."""
        run("ip", "netns", "add", self._hub)
        for setting in ROUTING:
            shell = ("sh", "-c", f"cd /proc/sys/net/ipv4 && echo {setting}")
            run("nsenter", f"--net={NAMESPACES / self._hub}", *shell)
        for number in range(NETWORKS_MAX):
            link = f"{NAMED}{number}"
            with suppress(NetworkError):
                run("ip", "link", "add", link, "type", "veth", "peer", "host", "netns", self._hub)
                run("ip", "addr", "add", f"{PREFIX}.{number}.1/30", "dev", link)
                run("ip", "link", "set", link, "up")
                self._up(self._hub, "host", f"{PREFIX}.{number}.2/30")
                run("ip", "route", "add", f"{PREFIX}.{number}.0/24", "via", f"{PREFIX}.{number}.2")
                self.guest = f"{PREFIX}.{number}.{GUEST}"
                run("ip", "addr", "add", f"{self.guest}/32", "dev", link)
                back = ("via", f"{PREFIX}.{number}.1")
                run("ip", "-n", self._hub, "route", "add", f"{self.guest}/32", *back)
                return number
        run("ip", "netns", "del", self._hub)
        raise NetworkError(f"all of {PREFIX}.0.0 to {PREFIX}.{NETWORKS_MAX}.0 are taken")

    def _up(self, namespace: str, link: str, address: str) -> None:
        run("ip", "-n", namespace, "addr", "add", address, "dev", link)
        run("ip", "-n", namespace, "link", "set", link, "up")

    def _add(self, node: int) -> None:
        own, link = self.namespace(node), f"node{node}"
        run("ip", "netns", "add", own)
        pair = ("type", "veth", "peer", "eth0", "netns", own)
        run("ip", "-n", self._hub, "link", "add", link, *pair)
        self._up(self._hub, link, f"{self._at(node, 1)}/28")
        self._up(own, "eth0", f"{self._at(node, 2)}/28")
        run("ip", "-n", own, "addr", "add", f"{self.told_address(node)}/32", "dev", "eth0")
        run("ip", "-n", own, "link", "set", "lo", "up")
        run("ip", "-n", own, "route", "add", "default", "via", self._at(node, 1))

    def _at(self, node: int, host: int) -> str:
        return f"{PREFIX}.{self._number}.{16 * node + host}"

    def namespace(self, node: int) -> str:
        return f"{self._name}-{node}"

    def address(self, node: int) -> str:
        """The address at which clients reach a node, wherever it moves."""
        return self._at(node, 2)

    def told_address(self, node: int) -> str:
        """The address at which its peers are to reach it now."""
        return self._at(node, 3 + self._moves[node] % PLACES)

    def told_addresses(self) -> list[str]:
        """All addresses at which nodes may be, now or after they have moved."""
        return [self._at(node, 3 + place) for node in self.nodes for place in range(PLACES)]

    def move(self, node: int) -> None:
        """Let its peers reach it at another address from now on, and none at the old one."""
        own, old = self.namespace(node), self.told_address(node)
        self._moves[node] += 1
        run("ip", "-n", own, "addr", "add", f"{self.told_address(node)}/32", "dev", "eth0")
        run("ip", "-n", own, "addr", "del", f"{old}/32", "dev", "eth0")

    def enter(self, node: int) -> list[str]:
        """The first words of a command to run at that node; its pid is that of the command."""
        return ["nsenter", f"--net={NAMESPACES / self.namespace(node)}"]

    def cut(self, pairs: Iterable[tuple[int, int]]) -> None:
        """From now on nothing gets from the first of each pair to the second."""
        for source, target in sorted(set(pairs) - self.blocked):
            self._rule("add", source, target)
            self.blocked.add((source, target))

    def silence(self, node: int) -> None:
        """Drop everything that it sends, from now on and permanently."""
        run("ip", "-n", self._hub, "rule", "add", "from", f"{self._at(node, 0)}/28", "blackhole")

    def heal(self) -> None:
        """Everything arrives again."""
        for source, target in sorted(self.blocked):
            self._rule("del", source, target)
            self.blocked.discard((source, target))

    def _rule(self, action: str, source: int, target: int) -> None:
        places = (f"{self._at(node, 0)}/28" for node in (source, target))
        between = ("from", next(places), "to", next(places))
        run("ip", "-n", self._hub, "rule", action, *between, "blackhole")

    def close(self) -> None:
        """Delete the namespaces; the links of the nodes go with them."""
        with suppress(NetworkError):
            run("ip", "link", "del", f"{NAMED}{self._number}")
        for name in (*(self.namespace(node) for node in self.nodes), self._hub):
            with suppress(NetworkError):
                run("ip", "netns", "del", name)
