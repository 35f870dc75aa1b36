"""Resources and changes of them, and a cluster with a topic that has configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)

if TYPE_CHECKING:
    from tests.unit.controller.conftest import Cluster

TOPIC = ConfigResource(ResourceType.TOPIC, "a")
BROKER = ConfigResource(ResourceType.BROKER, "1")
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


def alter(*changes: ConfigChange, resource: ConfigResource = TOPIC) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs((ConfigAlteration(resource, changes),))


def put(name: str, value: str) -> ConfigChange:
    return ConfigChange(name, AlterOperation.SET, value)


@pytest.fixture
def topic(cluster: Cluster) -> Cluster:
    cluster.create("a", (1,), configs=(("retention.ms", "1000"), ("cleanup.policy", "compact")))
    return cluster
