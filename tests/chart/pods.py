"""Pods without Kubernetes: what the chart renders, started as real processes as a kubelet would.

Each pod has a network of its own, in which its ports are the chart's, and sees the names that the
cluster's DNS would know, as a file of hosts. Command lines, environment and files are taken from
the manifests; only the folders below which files lie are others. Nothing is needed but root and
iproute2.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from tests.chart.rendering import ROOT, one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from tests.chaos.network import Network
    from tests.chart.api_server import ApiServer

RELEASE: Final = "q-quorate"
NAMESPACE: Final = "default"
DOMAIN: Final = f"{NAMESPACE}.svc.cluster.local"
FOLDERS: Final = {"/etc/quorate": "etc", "/var/lib/quorate": "data", "/backup": "backup"}
ACCOUNT: Final = "/run/secrets/kubernetes.io/serviceaccount"
COMMAND_S: Final = 180.0
# Files of its own in place of /etc/hosts and of what Kubernetes mounts; then the command.
ENTER: Final = f"""
mount --bind "$1" /etc/hosts
mount --bind "$2" /etc/resolv.conf
mount -t tmpfs tmpfs /run
mkdir -p {ACCOUNT}
mount --bind "$3" {ACCOUNT}
shift 3
exec "$@"
"""


class Pods:
    """The pods of one release by ordinal. Use as a context manager: it ends what was started."""

    def __init__(
        self,
        folder: Path,
        objects: list[dict[str, Any]],
        network: Network,
        api_servers: Mapping[int, ApiServer],
        certificates: Mapping[str, bytes],
    ) -> None:
        """`certificates` are the files of the Secret; an API server listens in each pod."""
        self._folder = folder
        self._objects = objects
        self._network = network
        self._api_servers = api_servers
        self._certificates = certificates
        self._running: dict[tuple[int, str], subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for ordinal in self._api_servers:
            self._lay_out(ordinal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        del kind, error, traceback
        for ordinal, name in list(self._running):
            self.stop(ordinal, name)

    # --- what a pod finds -------------------------------------------------------------------------

    def folder(self, ordinal: int) -> Path:
        """The folder of a pod's files."""
        return self._folder / f"pod-{ordinal}"

    def _lay_out(self, ordinal: int) -> None:
        folder = self.folder(ordinal)
        for name in ("data", "backup"):
            (folder / name).mkdir(parents=True)
        config = folder / "etc" / "config"
        config.mkdir(parents=True)
        for name, text in one(self._objects, "ConfigMap", RELEASE)["data"].items():
            (config / name).write_text(self._moved(ordinal, text))
        tls = folder / "etc" / "tls"
        tls.mkdir()
        for name, content in self._certificates.items():
            (tls / name).write_bytes(content)
        (folder / "hosts").write_text(self._hosts())
        # A request for more than the file knows is refused immediately.
        (folder / "resolv.conf").write_text("nameserver 127.0.0.1\n")

    def _moved(self, ordinal: int, text: str) -> str:
        """With the folders of this pod instead of those of a container."""
        for inside, outside in FOLDERS.items():
            text = text.replace(inside, str(self.folder(ordinal) / outside))
        return text

    def _hosts(self) -> str:
        """The names that the cluster's DNS would resolve, as a hosts file."""
        lines = ["127.0.0.1 localhost"]
        for ordinal in self._api_servers:
            name = f"{RELEASE}-{ordinal}.{RELEASE}-headless.{DOMAIN}"
            address = self._network.address(place(ordinal))
            lines.append(f"{address} {name} {name.removesuffix('.cluster.local')}")
            service = f"{RELEASE}.{DOMAIN}"
            lines.append(f"{address} {service} {service.removesuffix('.cluster.local')}")
        return "\n".join(lines) + "\n"

    def container(self, name: str) -> dict[str, Any]:
        """A container of the controllers' pods."""
        spec = one(self._objects, "StatefulSet")["spec"]["template"]["spec"]
        both = [*spec["initContainers"], *spec["containers"]]
        found: dict[str, Any] = next(each for each in both if each["name"] == name)
        return found

    def environment(self, ordinal: int, items: Sequence[dict[str, Any]]) -> dict[str, str]:
        """The environment of a pod's container, with references followed as Kubernetes does."""
        name = f"{RELEASE}-{ordinal}"
        fields = {
            "metadata.name": name,
            "metadata.labels['apps.kubernetes.io/pod-index']": str(ordinal),
        }
        told: dict[str, str] = {}
        for item in items:
            value: str = item.get("value", "")
            match item.get("valueFrom", {}):
                case {"fieldRef": {"fieldPath": path}}:
                    value = fields[path]
                case {"configMapKeyRef": {"name": config_map, "key": key}}:
                    value = one(self._objects, "ConfigMap", config_map)["data"][key]
            told[item["name"]] = expanded([value], told)[0]
        return {key: self._moved(ordinal, value) for key, value in told.items()}

    # --- processes --------------------------------------------------------------------------------

    def _command(self, ordinal: int, words: Sequence[str]) -> list[str]:
        folder = self.folder(ordinal)
        return [
            *self._network.enter(place(ordinal)),
            *("unshare", "--mount", "sh", "-euc", ENTER, "sh"),
            *(str(folder / "hosts"), str(folder / "resolv.conf")),
            str(self._api_servers[ordinal].account),
            *(self._moved(ordinal, word) for word in words),
        ]

    def _environment(self, ordinal: int, told: Mapping[str, str]) -> dict[str, str]:
        places = (Path(sys.executable).parent, ROOT / "deploy/images/quorate")
        path = f"{places[0]}:{places[1]}:{os.environ['PATH']}"
        return {"PATH": path, **self._api_servers[ordinal].environment, **told}

    def run(
        self, ordinal: int, words: Sequence[str], told: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command in a pod, to its end."""
        return subprocess.run(
            self._command(ordinal, words),
            env=self._environment(ordinal, told or {}),
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )

    def run_container(
        self, ordinal: int, container: dict[str, Any]
    ) -> subprocess.CompletedProcess[str]:
        """A container that ends by itself."""
        environment = self.environment(ordinal, container.get("env", ()))
        return self.run(ordinal, expanded(words_of(container), environment), environment)

    def start(self, ordinal: int, name: str) -> None:
        """A container that stays."""
        container = self.container(name)
        environment = self.environment(ordinal, container["env"])
        with self.log(ordinal, name).open("ab") as output:
            # nsenter, unshare and sh each become the next one, and the last the process itself.
            self._running[ordinal, name] = subprocess.Popen(
                self._command(ordinal, words_of(container)),
                env=self._environment(ordinal, environment),
                stdout=output,
                stderr=output,
            )

    def begin(self, ordinal: int) -> str:
        """All containers of a pod, in their order; what its init container says."""
        done = self.run_container(ordinal, self.container("format"))
        assert done.returncode == 0, done.stdout + done.stderr
        self.start(ordinal, "admin")
        self.start(ordinal, "controller")
        return done.stdout

    def wipe(self, ordinal: int) -> None:
        """Delete the pod's claim, and make it again."""
        data = self.folder(ordinal) / "data"
        shutil.rmtree(data)
        data.mkdir()

    def stop(self, ordinal: int, name: str) -> int:
        """SIGTERM; its exit status."""
        process = self._running.pop((ordinal, name))
        process.terminate()
        try:
            return process.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def log(self, ordinal: int, name: str) -> Path:
        """The path of a container's output."""
        return self.folder(ordinal) / f"{name}.log"


def place(ordinal: int) -> int:
    """The number of a pod among the networks, whose first one is 1."""
    return ordinal + 1


def expanded(words: Sequence[str], told: Mapping[str, str]) -> list[str]:
    """The words with `$(NAME)` replaced by variables, as Kubernetes does."""
    return [re.sub(r"\$\((\w+)\)", lambda found: told[found[1]], word) for word in words]


def words_of(container: dict[str, Any]) -> list[str]:
    """Its command line; without a command it is the image's entry point."""
    return [*container.get("command", ["quorate-init", "quorate"]), *container.get("args", [])]


def await_true(what: str, look: Callable[[], bool | str], within_s: float = COMMAND_S) -> None:
    """Until `look` returns True; what it returned last tells why not."""
    end_s = time.monotonic() + within_s
    while (seen := look()) is not True:
        assert time.monotonic() < end_s, f"{what}: not within {within_s} s, last seen: {seen}"
        time.sleep(0.2)
