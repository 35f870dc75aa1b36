"""Kafka's protocol as far as the loads need it: four requests to a controller, as bytes.

Every request is of a flexible version, on a connection that has one in flight: a Kafka server
works on one request of a connection at a time.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import TYPE_CHECKING, Final

from quorate.records.codec.varint import encode_uvarint
from quorate.records.ids import UUID_BYTES
from tests.bench.http2_client import Load

if TYPE_CHECKING:
    from collections.abc import Callable

CREATE_TOPICS: Final = (19, 7)
INCREMENTAL_ALTER_CONFIGS: Final = (44, 1)
BROKER_REGISTRATION: Final = (62, 4)
BROKER_HEARTBEAT: Final = (63, 1)
NO_TAGS: Final = b"\x00"
UNKNOWN_TOPIC: Final = 3
_TOPIC: Final = 2
_READ_BYTES: Final = 1 << 16


def compact(text: str) -> bytes:
    """A compact string."""
    data = text.encode()
    return encode_uvarint(len(data) + 1) + data


def array(items: list[bytes]) -> bytes:
    """A compact array."""
    return encode_uvarint(len(items) + 1) + b"".join(items)


def request(key: tuple[int, int], body: bytes, correlation_id: int = 0) -> bytes:
    """A whole request with its size, header version 2."""
    header = struct.pack(">hhih", *key, correlation_id, 5) + b"bench" + NO_TAGS
    return struct.pack(">i", len(header) + len(body)) + header + body


def alter_config(topic: str, name: str, value: str, *, validate_only: bool = False) -> bytes:
    """Set one config of one topic."""
    config = compact(name) + b"\x00" + compact(value) + NO_TAGS
    resource = struct.pack(">b", _TOPIC) + compact(topic) + array([config]) + NO_TAGS
    flag = b"\x01" if validate_only else b"\x00"
    return request(INCREMENTAL_ALTER_CONFIGS, array([resource]) + flag + NO_TAGS)


def create_topic(name: str, partitions: int, replication_factor: int) -> bytes:
    """Create one topic."""
    topic = (
        compact(name)
        + struct.pack(">ih", partitions, replication_factor)
        + array([])
        + array([])
        + NO_TAGS
    )
    return request(CREATE_TOPICS, array([topic]) + struct.pack(">ib", 30_000, 0) + NO_TAGS)


def register_broker(broker_id: int, cluster_id: str, features: dict[str, tuple[int, int]]) -> bytes:
    """Register a broker that does not exist."""
    incarnation = bytes([broker_id % 256]) * UUID_BYTES
    listener = compact("PLAINTEXT") + compact("127.0.0.1") + struct.pack(">Hh", 9092, 0) + NO_TAGS
    supported = [
        compact(name) + struct.pack(">hh", *levels) + NO_TAGS for name, levels in features.items()
    ]
    body = (
        struct.pack(">i", broker_id)
        + compact(cluster_id)
        + incarnation
        + array([listener])
        + array(supported)
        + b"\x00"  # no rack
        + b"\x00"  # not migrating
        + array([incarnation])
        + struct.pack(">q", -1)
        + NO_TAGS
    )
    return request(BROKER_REGISTRATION, body)


def heartbeat(broker_id: int, broker_epoch: int) -> bytes:
    """Say that a broker has caught up and wants to serve."""
    body = struct.pack(">iqqbb", broker_id, broker_epoch, broker_epoch, 0, 0) + NO_TAGS
    return request(BROKER_HEARTBEAT, body)


# --- answers, from behind the size ----------------------------------------------------------------


def error_of_configs(answer: bytes) -> int:
    """The error of the only resource of an IncrementalAlterConfigsResponse."""
    return int(struct.unpack_from(">h", answer, 4 + 1 + 4 + 1)[0])


def error_of_topics(answer: bytes) -> int:
    """The error of the only topic of a CreateTopicsResponse."""
    name_bytes = answer[4 + 1 + 4 + 1] - 1
    return int(struct.unpack_from(">h", answer, 4 + 1 + 4 + 1 + 1 + name_bytes + UUID_BYTES)[0])


def registered_epoch(answer: bytes) -> tuple[int, int]:
    """Error and broker epoch of a BrokerRegistrationResponse."""
    error, epoch = struct.unpack_from(">hq", answer, 4 + 1 + 4)
    return int(error), int(epoch)


class KafkaConnection:
    """One socket; requests are written whole, answers handed on whole."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answered: Callable[[bytes], None] = lambda _: None
        self._in = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> None:
        """Read what is there. Raises ConnectionError when the server has closed."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("the server has closed the connection")
        self._in += data
        while len(self._in) >= 4:
            size = int.from_bytes(self._in[:4], "big")
            if len(self._in) < 4 + size:
                break
            answer, self._in = self._in[4 : 4 + size], self._in[4 + size :]
            self.answered(answer)

    def flush(self) -> None:
        """Do nothing: everything is written immediately."""

    def close(self) -> None:
        self.socket.close()

    def ask(self, data: bytes) -> bytes:
        """One request, and its answer."""
        answers: list[bytes] = []
        self.answered = answers.append
        self.send(data)
        while not answers:
            self.receive()
        return answers[0]


class KafkaLoad(Load):
    """As many connections as requests in flight. `error_of` looks into each answer."""

    def __init__(
        self,
        address: tuple[str, int],
        next_request: Callable[[], bytes],
        error_of: Callable[[bytes], int],
        in_flight: int,
    ) -> None:
        super().__init__([KafkaConnection(*address) for _ in range(in_flight)])
        self._next_request = next_request
        self._error_of = error_of
        self._began: dict[KafkaConnection, int] = {}
        for connection in self.connections:
            assert isinstance(connection, KafkaConnection)
            connection.answered = self._answered_by(connection)
            self._send(connection)

    def _send(self, connection: KafkaConnection) -> None:
        self.in_flight += 1
        self._began[connection] = time.perf_counter_ns()
        connection.send(self._next_request())

    def _answered_by(self, connection: KafkaConnection) -> Callable[[bytes], None]:
        def answered(answer: bytes) -> None:
            error = self._error_of(answer)
            if error:
                raise ValueError(f"Kafka refused a write with error {error}")
            self.latencies_ns.append(time.perf_counter_ns() - self._began[connection])
            self.answered += 1
            self.in_flight -= 1
            if self.is_open:
                self._send(connection)

        return answered


class KafkaOffers:
    """Config writes to one member, pipelined; a member that is not active refuses them."""

    def __init__(self, address: tuple[str, int], topic: str) -> None:
        self.has_committed = False
        self._connection = KafkaConnection(*address)
        self._connection.answered = self._answered
        self._request = alter_config(topic, "retention.ms", "3600000")

    @property
    def socket(self) -> socket.socket:
        return self._connection.socket

    def _answered(self, answer: bytes) -> None:
        self.has_committed |= error_of_configs(answer) == 0

    def offer(self) -> None:
        self._connection.send(self._request)

    def take(self) -> None:
        self._connection.receive()

    def close(self) -> None:
        self._connection.close()
