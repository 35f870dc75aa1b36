"""Harms the machines of a cluster, by a command that knows what they are made of.

It is called with one of these, and waits until that is done:

    kill NODE CONTAINER       SIGKILL to the container's first process
    run NODE CONTAINER WORD…  a command in that container, without the API server
    exec NODE WORD…           a command on the node, as root
    stop NODE, start NODE     a power cut: nothing ends in an orderly way; and the node boots
    cut NODE, join NODE       the node runs on and reaches no other; and reaches them again
    api-stop, api-start       the API server dies, and comes back

README.md has the commands for kind and k3d.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.e2e.commands import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.cluster import Cluster, Release

BOOT_S: Final = 300.0


@dataclass(frozen=True)
class Nodes:
    """Faults of nodes: each is undone at the end of its `with`, whatever happens inside it."""

    command: tuple[str, ...]

    def _do(self, *words: str) -> str:
        return run(*self.command, *words, timeout_s=BOOT_S)

    def kill(self, release: Release, ordinal: int) -> None:
        """SIGKILL to a controller's process."""
        self._do("kill", release.node_of(ordinal), release.container_id(ordinal))

    def run_in(self, node: str, container: str, *words: str) -> str:
        """A command in a container, whether or not there is an API server; what it says."""
        return self._do("run", node, container, *words)

    def execute(self, node: str, *words: str) -> str:
        """A command on a node; what it says."""
        return self._do("exec", node, *words)

    @contextmanager
    def powered_off(self, node: str) -> Iterator[None]:
        """End all its processes at the same moment."""
        self._do("stop", node)
        try:
            yield
        finally:
            self._do("start", node)

    @contextmanager
    def cut_off(self, node: str) -> Iterator[None]:
        """It runs on alone."""
        self._do("cut", node)
        try:
            yield
        finally:
            self._do("join", node)

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """Stop the API server: the cluster cannot be read or changed, not even by kubectl."""
        self._do("api-stop")
        try:
            yield
        finally:
            self._do("api-start")


def spread(release: Release) -> None:
    """See that each controller has a node of its own; one fault would harm two otherwise."""
    nodes = [pod["spec"]["nodeName"] for pod in release.pods()]
    assert len(set(nodes)) == len(nodes), f"the controllers share nodes: {nodes}"


@contextmanager
def only_schedulable(cluster: Cluster, node: str) -> Iterator[None]:
    """New pods land on this node alone."""
    found = cluster.kubectl("get", "nodes", "--output", "name", namespaced=False)
    names = [name.removeprefix("node/") for name in found.split()]
    others = [name for name in names if name != node]
    cluster.kubectl("cordon", *others, namespaced=False)
    try:
        yield
    finally:
        cluster.kubectl("uncordon", *others, namespaced=False)
