"""What the controller can be asked: frozen values, free of any transport.

Names follow Kafka's Admin and broker requests in snake_case. Lists carry many items because an
answer reports errors per item (rule 20).
"""

from __future__ import annotations

from typing import TypeAlias

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    ListBrokers,
    RegisterBroker,
    UnregisterBroker,
)
from quorate.controller.configs.messages import DescribeConfigs, IncrementalAlterConfigs
from quorate.controller.topics.messages import (
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
)
from quorate.records.value import value


@value
class Caller:
    """Who asks, for the authoriser: a principal such as `User:alice`, and the address it uses."""

    principal: str
    host: str


WriteRequest: TypeAlias = (
    CreateTopics
    | DeleteTopics
    | IncrementalAlterConfigs
    | RegisterBroker
    | BrokerHeartbeat
    | UnregisterBroker
)


ReadRequest: TypeAlias = ListTopics | DescribeTopics | DescribeConfigs | ListBrokers
