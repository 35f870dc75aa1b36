"""Files of a local quorum: ports, properties, formatted directories.

`DIR/quorum.json` describes the quorum; node i has `DIR/i/controller.properties`, its metadata in
`DIR/i/metadata` and its log output in `DIR/i/controller.log`. A directory is formatted once only: a
voter that lost its disk must not return with its old id and vote again.
"""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.cli.output import CommandError, non_utf8_argument
from quorate.cli.storage_format_plan import bootstrap_records
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    NodeId,
    ReplicaKey,
    format_uuid,
    parse_directory_id,
)
from quorate.records.value_types import value_type
from quorate.records.voters import Endpoint, Voter, VoterSet
from quorate.settings.properties import format_properties
from quorate.settings.regular_files import NotRegularFileError, read_regular
from quorate.storage.file_system import OsFileSystem, write_atomically
from quorate.storage.formatter import Formatting, format_directory
from quorate.storage.layout import META_PROPERTIES
from quorate.storage.meta_properties import MetaProperties
from quorate.storage.random_ids import draw_uuid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HOST: Final = "127.0.0.1"
LISTENER: Final = "GRPC"
HEALTH_PORT_STEP: Final = 100
METRICS_PORT_STEP: Final = 200
# With more, the listeners of one node would collide with the health ports of another.
CONTROLLERS_MAX: Final = 100
BASE_PORT_DEFAULT: Final = 9094
CONTROLLERS_DEFAULT: Final = 3
_PORT_MAX: Final = 65_535


@value_type
class NodePlan:
    """The port of one node and the location of its files."""

    node_id: int
    port: int
    directory: Path
    host: str = HOST

    @property
    def health_port(self) -> int:
        return self.port + HEALTH_PORT_STEP

    @property
    def metrics_port(self) -> int:
        return self.port + METRICS_PORT_STEP

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def properties_path(self) -> Path:
        return self.directory / "controller.properties"

    @property
    def metadata_dir(self) -> Path:
        return self.directory / "metadata"

    @property
    def output_path(self) -> Path:
        """The file for stdout and stderr of the process."""
        return self.directory / "controller.log"

    def properties(self, bootstrap_servers: str) -> dict[str, str]:
        """The node's configuration under Kafka's keys."""
        return {
            "node.id": str(self.node_id),
            "process.roles": "controller",
            "listeners": f"{LISTENER}://{self.host}:{self.port}",
            "controller.listener.names": LISTENER,
            "controller.quorum.bootstrap.servers": bootstrap_servers,
            "metadata.log.dir": str(self.metadata_dir),
            "health.port": str(self.health_port),
            "metrics.port": str(self.metrics_port),
            "grpc.reflection.enable": "true",
            # All nodes stop at the same time, so the last leader waits for no successor.
            "shutdown.timeout.ms": "1000",
        }


@value_type
class LocalQuorum:
    """A quorum's identity, as DIR/quorum.json keeps it."""

    root: Path
    cluster_id: ClusterId
    base_port: int
    directory_ids: tuple[DirectoryId, ...]
    is_formatted: bool = False

    @property
    def nodes(self) -> tuple[NodePlan, ...]:
        """Node i listens on base port + i - 1."""
        return tuple(
            NodePlan(i, self.base_port + i - 1, self.root / str(i))
            for i in range(1, len(self.directory_ids) + 1)
        )

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    @property
    def voters(self) -> VoterSet:
        """All nodes vote."""
        return VoterSet.of(
            Voter(
                ReplicaKey(NodeId(node.node_id), directory_id),
                (Endpoint(LISTENER, HOST, node.port),),
            )
            for node, directory_id in zip(self.nodes, self.directory_ids, strict=True)
        )

    def ports(self) -> Iterator[tuple[int, str]]:
        """Every port with its purpose."""
        for node in self.nodes:
            yield node.port, f"controller {node.node_id}"
            yield node.health_port, f"health of controller {node.node_id}"
            yield node.metrics_port, f"metrics of controller {node.node_id}"

    def save(self, *, is_formatted: bool) -> None:
        """Write DIR/quorum.json, durable on return."""
        document = {
            "cluster_id": self.cluster_id,
            "base_port": self.base_port,
            "directory_ids": [format_uuid(directory_id) for directory_id in self.directory_ids],
            "is_formatted": is_formatted,
        }
        data = json.dumps(document, indent=2).encode() + b"\n"
        write_atomically(OsFileSystem(), str(_identity_path(self.root)), data)


def _identity_path(root: Path) -> Path:
    return root / "quorum.json"


def open_quorum(root: Path, *, controllers: int | None, base_port: int | None) -> LocalQuorum:
    """Open the quorum in `root`, or create one; None stands for the existing value or the default.

    Raises CommandError if the request does not match the existing quorum.
    """
    # Unlike Path.resolve, which raises for a link that leads to itself.
    root = Path(os.path.realpath(root))
    try:
        str(root).encode()
    except UnicodeEncodeError as error:
        # A properties file is UTF-8 text.
        raise CommandError(f"--data-dir: {non_utf8_argument(error)}") from error
    path = _identity_path(root)
    if not path.exists():
        return _new_quorum(
            root,
            CONTROLLERS_DEFAULT if controllers is None else controllers,
            BASE_PORT_DEFAULT if base_port is None else base_port,
        )
    try:
        document = json.loads(read_regular(str(path)))
        quorum = LocalQuorum(
            root,
            ClusterId(document["cluster_id"]),
            int(document["base_port"]),
            tuple(parse_directory_id(text) for text in document["directory_ids"]),
            bool(document["is_formatted"]),
        )
    except NotRegularFileError as error:
        raise CommandError(f"{path}: {error}; restore it, or choose another --data-dir") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CommandError(
            f"{path}: {error!r}; restore it, or choose another --data-dir"
        ) from error
    if controllers not in (None, len(quorum.nodes)):
        raise CommandError(
            f"--controllers: {root} holds a quorum of {len(quorum.nodes)}, not {controllers};"
            " leave the flag out, or choose another --data-dir"
        )
    if base_port not in (None, quorum.base_port):
        raise CommandError(
            f"--base-port: the voters in {root} are known on ports from {quorum.base_port} on;"
            " leave the flag out, or choose another --data-dir"
        )
    return quorum


def _new_quorum(root: Path, controllers: int, base_port: int) -> LocalQuorum:
    if not 1 <= controllers <= CONTROLLERS_MAX:
        raise CommandError(f"--controllers: {controllers} is not from 1 to {CONTROLLERS_MAX}")
    highest = base_port + METRICS_PORT_STEP + controllers - 1
    if base_port < 1 or highest > _PORT_MAX:
        raise CommandError(f"--base-port: {base_port} to {highest} are not all ports")
    identities = [draw_uuid() for _ in range(controllers + 1)]
    return LocalQuorum(
        root,
        ClusterId(format_uuid(identities[0])),
        base_port,
        tuple(DirectoryId(identity) for identity in identities[1:]),
    )


def check_ports(quorum: LocalQuorum) -> None:
    """Raises CommandError that names the first port on which another process listens."""
    for port, purpose in quorum.ports():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            # A port that a finished process left in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                raise CommandError(
                    f"port {port} ({purpose}) is busy: {error.strerror}; stop what listens there,"
                    " or choose another --base-port with another --data-dir"
                ) from error


def prepare(quorum: LocalQuorum, overrides: Mapping[str, str] | None = None) -> None:
    """Write all properties, and format what the first start has not formatted yet.

    The identity is saved before the first directory is formatted, so that a start that was
    interrupted is continued under the same ids. Raises StorageError, OSError.
    """
    quorum.root.mkdir(parents=True, exist_ok=True)
    if not quorum.is_formatted:
        quorum.save(is_formatted=False)
    for node, directory_id in zip(quorum.nodes, quorum.directory_ids, strict=True):
        node.directory.mkdir(exist_ok=True)
        properties = node.properties(quorum.bootstrap_servers) | dict(overrides or {})
        node.properties_path.write_text(format_properties(properties), encoding="utf-8")
        if not quorum.is_formatted and not (node.metadata_dir / META_PROPERTIES).exists():
            meta = MetaProperties(NodeId(node.node_id), quorum.cluster_id, directory_id)
            format_node(node.metadata_dir, meta, quorum.voters)
    if not quorum.is_formatted:
        quorum.save(is_formatted=True)


def format_node(metadata_dir: Path, meta: MetaProperties, voters: VoterSet | None) -> None:
    """Format one directory at the latest metadata.version; without voters for an observer."""
    fs = OsFileSystem()
    # Created separately, so that only this user has access.
    fs.make_dirs(str(metadata_dir))
    format_directory(
        fs,
        str(metadata_dir),
        Formatting(meta=meta, records=bootstrap_records({}), voters=voters),
        timestamp_ms=time.time_ns() // 1_000_000,
    )
