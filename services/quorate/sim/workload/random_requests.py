"""Random client and broker requests over a small set of names, so that they collide.

For example, a topic is created twice, changed in the batch that created it, or deleted. A broker
sends a heartbeat before it is registered, or after another process has replaced it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    Listener,
    RegisterBroker,
    UnregisterBroker,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.features.levels import SUPPORTED_FEATURES
from quorate.controller.topics.messages import CreateTopics, DeleteTopics, NewTopic
from quorate.records.ids import Offset
from quorate.sim.engine.node_config import CLUSTER_ID

if TYPE_CHECKING:
    from quorate.controller.image import MetadataImage
    from quorate.controller.request_types import WriteRequest
    from quorate.sim.randomness import RandomSource

_TOPICS: Final = ("a", "b.c", "b_c", "d", "__consumer_offsets")
_BROKERS: Final = 5
# Few partitions are decided in one slice, many in several.
_PARTITIONS: Final = (1, 1, 1, 2, 40)
_SETTINGS: Final = (
    ("retention.ms", ("1", "2", "3", "compact")),
    ("cleanup.policy", ("compact", "delete")),
)
_OPERATIONS: Final = (*(AlterOperation.SET,) * 5, *AlterOperation)
_KINDS: Final = (
    ("heartbeat", 0.32),
    ("alteration", 0.3),
    ("creation", 0.18),
    ("registration", 0.09),
    ("deletion", 0.09),
    ("removal", 0.02),
)


class RandomRequests:
    """Random requests of one random stream, each based on the metadata that its caller has."""

    def __init__(self, random_source: RandomSource) -> None:
        self._random_source = random_source

    def one(self, image: MetadataImage) -> WriteRequest:
        """The next random request."""
        match self._random_source.weighted(_KINDS):
            case "heartbeat" if image.brokers.by_id:
                return self._heartbeat(image)
            case "alteration":
                return self._alteration()
            case "creation":
                return self._creation()
            case "deletion":
                return DeleteTopics((self._random_source.choice(_TOPICS),))
            case "removal":
                return UnregisterBroker(self._random_source.between(1, _BROKERS))
        return self._registration()

    def _heartbeat(self, image: MetadataImage) -> BrokerHeartbeat:
        """A heartbeat of a broker that may lag, have another epoch, or be about to shut down."""
        draws = self._random_source
        broker_id = self._random_source.choice(sorted(image.brokers.by_id))
        epoch = image.brokers.by_id[broker_id].registration.broker_epoch
        end = image.position.end_offset
        return BrokerHeartbeat(
            broker_id=broker_id if draws.chance(0.97) else _BROKERS + 1,
            broker_epoch=epoch if draws.chance(0.95) else epoch + 1,
            current_metadata_offset=Offset(end - (1 if draws.chance(0.8) else 30)),
            want_fence=draws.chance(0.05),
            want_shut_down=draws.chance(0.05),
        )

    def _registration(self) -> RegisterBroker:
        """A registration of a broker that may be registered, by the same or another process."""
        broker_id, process = (
            self._random_source.between(1, _BROKERS),
            self._random_source.between(1, 3),
        )
        return RegisterBroker(
            broker_id=broker_id,
            incarnation_id=bytes((1, broker_id, process)).rjust(16, b"\x10"),
            cluster_id=CLUSTER_ID,
            listeners=(Listener("PLAINTEXT", f"broker-{broker_id}", 9000 + process),),
            features=SUPPORTED_FEATURES,
            rack=self._random_source.choice((None, "r1", "r2")),
            log_dirs=(bytes((2, broker_id)).rjust(16, b"\x10"),),
        )

    def _creation(self) -> CreateTopics:
        draws = self._random_source
        return CreateTopics(
            tuple(
                NewTopic(
                    self._random_source.choice(_TOPICS),
                    partitions=self._random_source.choice(_PARTITIONS),
                    replication_factor=draws.between(1, 3),
                    configs=self._random_source.choice(
                        ((), (("retention.ms", "5"),), (("what", "5"),))
                    ),
                )
                for _ in range(self._random_source.choice((1, 1, 2, 3)))
            ),
            validate_only=draws.chance(0.1),
        )

    def _alteration(self) -> IncrementalAlterConfigs:
        return IncrementalAlterConfigs(
            tuple(
                ConfigAlteration(self._resource(), (self._change(),))
                for _ in range(self._random_source.choice((1, 1, 1, 3)))
            ),
            validate_only=self._random_source.chance(0.05),
        )

    def _resource(self) -> ConfigResource:
        if self._random_source.chance(0.5):
            return ConfigResource(ResourceType.TOPIC, self._random_source.choice(_TOPICS))
        return ConfigResource(ResourceType.BROKER, self._random_source.choice(("", "1")))

    def _change(self) -> ConfigChange:
        """A config change; often without effect, sometimes invalid."""
        name, values = self._random_source.choice(_SETTINGS)
        return ConfigChange(
            name, self._random_source.choice(_OPERATIONS), self._random_source.choice(values)
        )
