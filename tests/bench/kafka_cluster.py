"""Stock Kafka's controllers, if its jars and a Java runtime are on the machine.

Settings are Kafka's defaults, its heap included; only the sessions of brokers that do not run are
long, and the log goes to a file at WARN, which spares it a line for every partition.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from quorate.records.ids import format_uuid
from quorate.storage.random_ids import draw_uuid
from tests.bench import kafka_client
from tests.bench.processes import READY_S, Members
from tests.interop.stock_kafka import write_properties
from tests.ports import HOST, free_ports
from tools.fetch_kafka import is_complete

if TYPE_CHECKING:
    from pathlib import Path

SESSION_MS: Final = 3_600_000
_HEAP: Final = ("-Xmx1G", "-Xms1G")
_LOG4J2: Final = """<Configuration><Appenders><Console name="out"/></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""
_FEATURES: Final = {
    "metadata.version": (7, 30),
    "kraft.version": (0, 1),
    "group.version": (0, 1),
    "transaction.version": (0, 2),
    "eligible.leader.replicas.version": (0, 1),
    "share.version": (0, 2),
    "streams.version": (0, 1),
}


def problem(jars: Path) -> str | None:
    """The reason why Kafka cannot be measured here, or None."""
    if shutil.which("java") is None:
        return "java is not on the PATH"
    if not is_complete(jars):
        return f"{jars} does not hold Kafka's jars: `make kafka` fetches them"
    return None


class KafkaMembers(Members):
    """Controllers with their voters in the log."""

    name = "kafka"

    def __init__(self, root: Path, jars: Path, count: int = 3) -> None:
        super().__init__(root, count)
        self._jars = jars
        self._ports = free_ports(count)
        self.cluster_id = format_uuid(draw_uuid())
        self._directories = [format_uuid(draw_uuid()) for _ in range(count)]
        self._log4j2 = root / "kafka-log4j2.xml"
        self._log4j2.write_text(_LOG4J2, encoding="utf-8")
        for member in range(count):
            self._write_properties(member)

    def _properties(self, member: int) -> Path:
        return self.root / f"kafka-{member}.properties"

    def _write_properties(self, member: int) -> None:
        servers = ",".join(f"{HOST}:{port}" for port in self._ports)
        properties = {
            "process.roles": "controller",
            "node.id": member + 1,
            "controller.quorum.bootstrap.servers": servers,
            "listeners": f"CONTROLLER://{HOST}:{self._ports[member]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.root / f"kafka-{member}",
            "broker.session.timeout.ms": SESSION_MS,
        }
        write_properties(self._properties(member), properties)

    def _java(self, main: str, *arguments: str, heap: tuple[str, ...] = ()) -> list[str]:
        logs = f"-Dlog4j2.configurationFile={self._log4j2}"
        return ["java", *heap, logs, "-cp", f"{self._jars}/*", main, *arguments]

    def format(self, member: int) -> None:
        """kafka-storage format, as a process of its own."""
        voters = ",".join(
            f"{i + 1}@{HOST}:{port}:{directory}"
            for i, (port, directory) in enumerate(zip(self._ports, self._directories, strict=True))
        )
        flags = ["--cluster-id", self.cluster_id, "--initial-controllers", voters]
        command = self._java(
            "kafka.tools.StorageTool", "format", "-c", str(self._properties(member)), *flags
        )
        subprocess.run(command, check=True, capture_output=True, timeout=READY_S)

    def command(self, member: int) -> list[str]:
        return self._java("kafka.Kafka", str(self._properties(member)), heap=_HEAP)

    def address(self, member: int) -> tuple[str, int]:
        return HOST, self._ports[member]

    def find_leader(self) -> int | None:
        """The active controller: the one that does not send the caller elsewhere."""
        request = kafka_client.alter_config("none", "retention.ms", "1", validate_only=True)
        for member in range(self.count):
            with suppress(OSError):
                connection = kafka_client.KafkaConnection(*self.address(member))
                try:
                    error = kafka_client.error_of_configs(connection.ask(request))
                finally:
                    connection.close()
                if error in (0, kafka_client.UNKNOWN_TOPIC):
                    return member
        return None

    def register_broker(self, broker_id: int) -> None:
        """Register and unfence a broker at the active controller."""
        connection = kafka_client.KafkaConnection(*self.address(self.leader()))
        try:
            answer = connection.ask(
                kafka_client.register_broker(broker_id, self.cluster_id, _FEATURES)
            )
            error, epoch = kafka_client.registered_epoch(answer)
            if error:
                raise ValueError(f"Kafka refused the registration of a broker with error {error}")
            connection.ask(kafka_client.heartbeat(broker_id, epoch))
        finally:
            connection.close()

    def create_topic(self, name: str) -> None:
        """Create a topic of one partition."""
        connection = kafka_client.KafkaConnection(*self.address(self.leader()))
        try:
            answer = connection.ask(kafka_client.create_topic(name, 1, 1))
        finally:
            connection.close()
        error = kafka_client.error_of_topics(answer)
        if error:
            raise ValueError(f"Kafka refused a topic with error {error}")
