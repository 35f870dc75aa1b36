"""Metadata writes: one setting of one topic, and topics with one partition, of ours and Kafka's."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.rpc.gen.controller.v1 import controller_pb2
from tests.bench import kafka_client, payloads
from tests.bench.commit_load import Point, Subject, connect
from tests.bench.failover import CallOffers
from tests.bench.http2_client import Load, StreamLoad
from tests.bench.processes import READY_S

if TYPE_CHECKING:
    from tests.bench.failover import Offers
    from tests.bench.kafka_cluster import KafkaMembers
    from tests.bench.quorate_cluster import QuorateMembers

TOPICS: Final = [f"bench-{number}" for number in range(1, 101)]
BROKER_ID: Final = 101
_names = itertools.count()


class MetadataSubject(Subject):
    """Our controllers, by one stream of writes."""

    members: QuorateMembers

    def prepare(self) -> None:
        """A broker that is never fenced, and the topics."""
        command = [str(Path(sys.executable).with_name("quorate")), "brokers"]
        command += ["--bootstrap-controller", self.members.quorum.bootstrap_servers]
        command += ["register", "--ids", str(BROKER_ID), "--once"]
        subprocess.run(command, check=True, capture_output=True, timeout=READY_S)
        make = payloads.topic_creations("bench", 1)
        connections = connect(self.members, self.members.leader(), 1)
        # As many as are in flight at first, and no more: the names are those of TOPICS.
        StreamLoad(
            connections, payloads.WRITE_PATH, make, payloads.last_write, len(TOPICS)
        ).finish()

    def open(self, point: Point, leader: int) -> Load:
        if point.creates_topics:
            make = payloads.topic_creations(f"created-{next(_names)}", 1)
        else:
            make = payloads.config_writes(TOPICS)
        connections = connect(self.members, leader, 1)
        return StreamLoad(
            connections, payloads.WRITE_PATH, make, payloads.last_write, point.in_flight
        )

    def committed(self, leader: int) -> int | None:
        described = self.members.describe(leader)
        return described.high_watermark if described is not None else None


class KafkaSubject(Subject):
    """Kafka's controllers, by as many connections as there are writes in flight."""

    members: KafkaMembers

    def prepare(self) -> None:
        """A broker that is never fenced, and the topics."""
        self.members.register_broker(BROKER_ID)
        for topic in TOPICS:
            self.members.create_topic(topic)

    def open(self, point: Point, leader: int) -> Load:
        count = itertools.count()
        address = self.members.address(leader)
        if point.creates_topics:
            prefix = f"created-{next(_names)}"
            return kafka_client.KafkaLoad(
                address,
                lambda: kafka_client.create_topic(f"{prefix}-{next(count)}", 1, 1),
                kafka_client.error_of_topics,
                point.in_flight,
            )
        topics = itertools.cycle(TOPICS)
        return kafka_client.KafkaLoad(
            address,
            lambda: kafka_client.alter_config(next(topics), "retention.ms", payloads.next_value()),
            kafka_client.error_of_configs,
            point.in_flight,
        )


def _is_committed(answer: bytes) -> bool:
    response = controller_pb2.WriteResponse.FromString(answer)
    return all(result.error == 0 for result in response.results)


def open_writes(address: tuple[str, int]) -> Offers:
    """Config writes to one of our controllers."""
    write = payloads.config_writes(TOPICS)(1)
    return CallOffers(address, payloads.WRITE_ONCE_PATH, write, _is_committed)


def open_kafka_writes(address: tuple[str, int]) -> Offers:
    """Config writes to one of Kafka's controllers."""
    return kafka_client.KafkaOffers(address, TOPICS[0])
