"""What the controller answers: one reply for a request, one error code and message per item.

A message is empty exactly where the code is NONE; otherwise it names the field and the remedy. The
`offset` of a read is the end of the committed log that the answer reflects: it includes everything
below.
"""

from __future__ import annotations

from typing import TypeAlias

from quorate.controller.brokers.messages import (
    BrokerHeartbeatReply,
    ListBrokersReply,
    RegisterBrokerReply,
    UnregisterBrokerReply,
)
from quorate.controller.configs.messages import DescribeConfigsReply, IncrementalAlterConfigsReply
from quorate.controller.topics.messages import (
    CreateTopicsReply,
    DeleteTopicsReply,
    DescribeTopicsReply,
    ListTopicsReply,
)

WriteReply: TypeAlias = (
    CreateTopicsReply
    | DeleteTopicsReply
    | IncrementalAlterConfigsReply
    | RegisterBrokerReply
    | BrokerHeartbeatReply
    | UnregisterBrokerReply
)


ReadReply: TypeAlias = (
    ListTopicsReply | DescribeTopicsReply | DescribeConfigsReply | ListBrokersReply
)
