"""A log directory that a stock server wrote: a single voter that was broker as well.

It holds records of all kinds that an administrator can cause, those among them that we only keep:
ACLs, SCRAM credentials, delegation tokens, producer ids.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.storage import layout
from tests.interop.stock_kafka import StockServer, write_properties
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
_ACLS: Final = "org.apache.kafka.tools.AclCommand"
_TOKENS: Final = "org.apache.kafka.tools.DelegationTokenCommand"
_PRODUCER: Final = "org.apache.kafka.tools.ConsoleProducer"

_AL_AT_APP: Final = "--entity-type users --entity-name al --entity-type clients --entity-name app"
_CONNECTIONS: Final = "connection_creation_rate"

# What is done to the server, each item a tool and its arguments; items of one step run together.
_STEPS: Final = (
    (
        (_TOPICS, "--create --topic orders --partitions 3 --config retention.ms=7000"),
        (_TOPICS, "--create --topic doomed --partitions 2 --config retention.ms=8000"),
        (CONFIGS, "--entity-type brokers --entity-default --add-config num.io.threads=5"),
        (CONFIGS, "--entity-type users --entity-name al --add-config SCRAM-SHA-256=[password=x]"),
        (CONFIGS, "--entity-type users --entity-name bo --add-config SCRAM-SHA-512=[password=y]"),
        (CONFIGS, f"{_AL_AT_APP} --add-config consumer_byte_rate=2048,producer_byte_rate=1024"),
        (CONFIGS, f"--entity-type ips --entity-name {HOST} --add-config {_CONNECTIONS}=10"),
        (
            _ACLS,
            "--add --allow-principal User:al --operation Read --operation Describe --topic orders",
        ),
        (_ACLS, "--add --deny-principal User:bo --topic pre --resource-pattern-type prefixed"),
    ),
    (
        (_TOPICS, "--delete --topic doomed"),
        (_TOPICS, "--alter --topic orders --partitions 4"),
        (CONFIGS, "--entity-type users --entity-name bo --delete-config SCRAM-SHA-512"),
        (CONFIGS, f"{_AL_AT_APP} --delete-config producer_byte_rate"),
        (
            CONFIGS,
            "--entity-type groups --entity-name g --add-config share.auto.offset.reset=latest",
        ),
        (_ACLS, "--remove --force --allow-principal User:al --operation Describe --topic orders"),
        (_TOKENS, "--create --max-life-time-period -1 --renewer-principal User:bo"),
        (_PRODUCER, "--topic orders"),
    ),
)


@dataclass(frozen=True)
class StockDirectory:
    """A stopped server: its folder, its properties, its log directory, where its broker listens."""

    folder: Path
    properties: Path
    broker: str

    @property
    def log_dir(self) -> Path:
        return self.folder / "data"

    @staticmethod
    def copy(log_dir: Path, target: Path) -> None:
        """Put a copy of a log directory in the place of another."""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(log_dir, target)


def make_directory(stock: StockKafka, folder: Path) -> StockDirectory:
    """Start a server, administer it, stop it."""
    folder.mkdir()
    controller, broker, sasl = free_ports(3)
    listeners = f"CONTROLLER://{HOST}:{controller},PLAINTEXT://{HOST}:{broker},SASL_PLAINTEXT://{HOST}:{sasl}"
    properties = write_properties(
        folder / "server.properties",
        {
            "process.roles": "broker,controller",
            "node.id": 1,
            "log.dirs": folder / "data",
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_PLAIN} user_admin="pw";',
            "delegation.token.secret.key": "secret",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "offsets.topic.replication.factor": 1,
            # A snapshot in the middle, and more log behind it.
            "metadata.log.max.record.bytes.between.snapshots": 3000,
        },
    )
    client = write_properties(
        folder / "client.properties",
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{_PLAIN} username="admin" password="pw";',
        },
    )
    stock.format(properties, CLUSTER_ID, "--standalone", "--feature", "group.version=0")
    directory = StockDirectory(folder, properties, f"{HOST}:{broker}")

    def administer(step: tuple[str, str]) -> None:
        tool, arguments = step
        address = ["--bootstrap-server", directory.broker]
        if tool == CONFIGS:
            address.append("--alter")
        if tool == _TOKENS:
            address = ["--bootstrap-server", f"{HOST}:{sasl}", "--command-config", str(client)]
        said = stock.run(tool, *address, *arguments.split(), stdin="a message\n")
        assert said.status == 0, (step, said)

    with StockServer(stock, properties) as server, ThreadPoolExecutor(2) as pool:
        assert server.has_started()
        for steps in _STEPS:
            list(pool.map(administer, steps))
        server.stop()
    return directory


def whole_log(log_dir: Path, target: Path) -> Path:
    """All segments of a log directory in one file, since the shell reads one."""
    logs = sorted((log_dir / layout.LOG_DIR).glob(f"*{layout.LOG_SUFFIX}"))
    target.mkdir(exist_ok=True)
    whole = target / logs[0].name
    whole.write_bytes(b"".join(log.read_bytes() for log in logs))
    return whole
