"""The files of a quorum of ours after a busy life, and what its leader said of them at the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatReply,
    ListBrokers,
    ListBrokersReply,
    Listener,
    RegisterBroker,
    RegisterBrokerReply,
    UnregisterBroker,
)
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    DescribeConfigs,
    DescribeConfigsReply,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.topics.messages import DeleteTopics, NewTopic
from quorate.records.errors import ErrorCode
from quorate.records.ids import Offset
from quorate.storage import layout
from tests.integration.disks import snapshots
from tests.integration.quorum import STEADY, Quorum

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.cli.local_quorum import LocalQuorum, NodePlan
    from quorate.controller.brokers.messages import ListedBroker
    from quorate.controller.client_quotas.messages import DescribedEntity
    from quorate.controller.topics.messages import DescribedTopic

# Snapshots and segments often, and nothing is cleaned away.
SETTINGS: Final = {
    "metadata.log.segment.bytes": "4096",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "-1",
}
GOING: Final = 7
TOPIC_CONFIGS: Final = ConfigResource(ResourceType.TOPIC, "orders")
ALL_BROKERS: Final = ConfigResource(ResourceType.BROKER, "")


@dataclass(frozen=True)
class OurFiles:
    """Directories of stopped controllers, and what the last leader knew."""

    plan: LocalQuorum
    topics: tuple[DescribedTopic, ...]
    brokers: tuple[ListedBroker, ...]
    configs: dict[tuple[ConfigResource, str], str | None]
    quotas: tuple[DescribedEntity, ...]

    def logs(self, node: NodePlan) -> list[Path]:
        return sorted((node.metadata_dir / layout.LOG_DIR).glob(f"*{layout.LOG_SUFFIX}"))

    def checkpoints(self, node: NodePlan) -> list[Path]:
        """Snapshots, the one with the first voters, and the one with the first metadata."""
        found = sorted((node.metadata_dir / layout.LOG_DIR).glob(f"*{layout.CHECKPOINT_SUFFIX}"))
        return [*found, node.metadata_dir / layout.BOOTSTRAP_CHECKPOINT]


def make_files(root: Path) -> OurFiles:
    """Start three controllers, keep them busy, change the leader, stop them."""
    return asyncio.run(_live(root))


async def _live(root: Path) -> OurFiles:
    async with Quorum(root, STEADY | SETTINGS) as quorum:
        await quorum.register_brokers()
        await _change_topics(quorum)
        await _change_configs(quorum)
        await _change_quotas(quorum)
        await _come_and_go(quorum)
        before = await quorum.leader()
        assert before.leader.leader_id is not None
        await quorum.stop(before.leader.leader_id)
        await quorum.start(before.leader.leader_id)
        after = await quorum.leader(above_epoch=before.leader.epoch)
        await quorum.create(
            *(NewTopic(f"later-{i}", partitions=4, replication_factor=3) for i in range(8))
        )

        async def all_have_snapshots() -> bool:
            return all(len(snapshots(node)) > 1 for node in quorum.nodes.values())

        await quorum.eventually("every controller has two snapshots", all_have_snapshots)
        end = Offset(await quorum.assert_logs_agree())
        assert after.leader.leader_id is not None
        topics = await quorum.topics_at(after.leader.leader_id, end)
        brokers = await quorum.client.read(ListBrokers(), min_offset=end)
        assert isinstance(brokers, ListBrokersReply)
        wanted = DescribeConfigs((TOPIC_CONFIGS, ALL_BROKERS))
        reply = await quorum.client.read(wanted, min_offset=end)
        assert isinstance(reply, DescribeConfigsReply)
        configs = {
            (found.resource, entry.name): entry.value
            for found in reply.resources
            for entry in found.entries
        }
        quotas = await quorum.client.read(DescribeClientQuotas(), min_offset=end)
        await quorum.stop(*quorum.nodes)
        return OurFiles(quorum.plan, topics, brokers.brokers, configs, quotas.entries)


async def _change_topics(quorum: Quorum) -> None:
    await quorum.create(
        NewTopic("orders", partitions=6, replication_factor=3, configs=(("retention.ms", "7"),)),
        NewTopic("placed", assignments=((1, 2), (3, 1))),
        NewTopic("doomed", partitions=2, replication_factor=2, configs=(("retention.ms", "8"),)),
        *(NewTopic(f"topic.{i}", partitions=8, replication_factor=3) for i in range(12)),
    )
    await quorum.client.write(DeleteTopics(("doomed", "topic.3")))


async def _change_configs(quorum: Quorum) -> None:
    def change(resource: ConfigResource, *changes: ConfigChange) -> ConfigAlteration:
        return ConfigAlteration(resource, changes)

    put, drop, append = AlterOperation.SET, AlterOperation.DELETE, AlterOperation.APPEND
    await quorum.client.write(
        IncrementalAlterConfigs(
            (
                change(
                    TOPIC_CONFIGS,
                    ConfigChange("cleanup.policy", put, "compact"),
                    ConfigChange("max.message.bytes", put, "12345"),
                ),
                change(
                    ALL_BROKERS,
                    ConfigChange("log.retention.ms", put, "777"),
                    ConfigChange("message.max.bytes", put, "99"),
                ),
            )
        )
    )
    await quorum.client.write(
        IncrementalAlterConfigs(
            (
                change(
                    TOPIC_CONFIGS,
                    ConfigChange("cleanup.policy", append, "delete"),
                    ConfigChange("retention.ms", drop),
                ),
                change(ALL_BROKERS, ConfigChange("message.max.bytes", drop)),
            )
        )
    )


async def _change_quotas(quorum: Quorum) -> None:
    """Of entities with names: stock's shell fails at defaults, of which it makes empty paths."""
    user, client = EntityPart("user", "alice"), EntityPart("client-id", "mirror")
    rate = QuotaOp("producer_byte_rate", 53_477_376.0)
    changes = (
        ((user,), (rate, QuotaOp("request_percentage", 12.5))),
        ((client, user), (QuotaOp("consumer_byte_rate", 2048.0),)),
        ((client,), (QuotaOp("controller_mutation_rate", 0.5),)),
        ((EntityPart("ip", "10.0.0.1"),), (QuotaOp("connection_creation_rate", 20.0),)),
        ((EntityPart("ip", "10.0.0.2"),), (QuotaOp("connection_creation_rate", 5.0),)),
    )
    later = (
        ((user,), (QuotaOp("request_percentage", remove=True), QuotaOp(rate.key, 1024.0))),
        ((EntityPart("ip", "10.0.0.2"),), (QuotaOp("connection_creation_rate", remove=True),)),
    )
    for alterations in (changes, later):
        entries = tuple(QuotaAlteration(entity, ops) for entity, ops in alterations)
        reply = await quorum.client.write(AlterClientQuotas(entries))
        assert {entry.error for entry in reply.entries} == {ErrorCode.NONE}


async def _come_and_go(quorum: Quorum) -> None:
    """Brokers 7 and 8 are registered, unfenced, given replicas, fenced; 8 is unregistered."""
    for broker_id in (GOING, GOING + 1):
        reply = await quorum.client.write(
            RegisterBroker(
                broker_id=broker_id,
                incarnation_id=bytes([broker_id]) * 16,
                cluster_id=quorum.plan.cluster_id,
                listeners=(Listener("PLAINTEXT", "127.0.0.1", 9092), Listener("TLS", "::1", 9, 1)),
                features=SUPPORTED_FEATURES,
                rack="of seven",
                log_dirs=tuple(f"disk {n}, broker {broker_id}".encode() for n in (1, 2)),
            )
        )
        assert isinstance(reply, RegisterBrokerReply)
        assert reply.error is ErrorCode.NONE, reply
        for wants_fence in (False, True):
            if wants_fence:
                await quorum.create(
                    NewTopic(f"guest-{broker_id}", assignments=((broker_id, 1), (2, broker_id)))
                )
            beat = await quorum.client.write(
                BrokerHeartbeat(
                    broker_id=broker_id,
                    broker_epoch=reply.broker_epoch,
                    current_metadata_offset=Offset(reply.broker_epoch),
                    want_fence=wants_fence,
                )
            )
            assert isinstance(beat, BrokerHeartbeatReply)
            assert (beat.error, beat.is_fenced) == (ErrorCode.NONE, wants_fence), beat
    await quorum.client.write(UnregisterBroker(GOING + 1))
