"""Each request by the method of its own name does what it does in an envelope."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import grpc.aio
from google.protobuf.json_format import MessageToDict

from quorate.controller.brokers.messages import (
    BrokerHeartbeat,
    ListBrokers,
    Listener,
    RegisterBroker,
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
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.controller.features.messages import FeatureRange
from quorate.controller.replication.messages import (
    AlterPartition,
    ElectionType,
    ElectLeaders,
)
from quorate.controller.topics.messages import (
    CreateTopics,
    DeleteTopics,
    DescribeTopics,
    ListTopics,
    NewTopic,
)
from quorate.records.ids import UUID_BYTES, ClusterId, Offset
from quorate.rpc.convert import controller as convert
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb
from quorate.rpc.gen.controller.v1 import controller_pb2_grpc
from quorate.rpc.health import HealthServer
from quorate.rpc.method_table import CONTROLLER, takes_any
from quorate.server.config import read_config
from quorate.server.node import Node
from tests.integration.transports import EACH, chosen

if TYPE_CHECKING:
    from collections.abc import Callable

    from quorate.controller.request_types import ReadRequest, WriteRequest

pytestmark = EACH

WAIT_S: Final = 60
# What differs between two that are alike.
_OWN: Final = {"topicId", "offset", "brokerId", "brokerEpoch", "incarnationId"}


def feature(name: str) -> FeatureRange:
    return FeatureRange(name, 1, 1000)


def registration(broker_id: int) -> RegisterBroker:
    return RegisterBroker(
        broker_id=broker_id,
        incarnation_id=bytes([broker_id]) * UUID_BYTES,
        cluster_id=ClusterId("cluster"),
        listeners=(Listener("PLAINTEXT", "h", 9092),),
        features=(feature("metadata.version"),),
        log_dirs=(bytes([broker_id + 100]) * UUID_BYTES,),
    )


def resource(number: int) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, f"twin-{number}")


def change(number: int) -> IncrementalAlterConfigs:
    to = ConfigChange("retention.ms", AlterOperation.SET, "7")
    return IncrementalAlterConfigs((ConfigAlteration(resource(number), (to,)),))


def quota(number: int) -> AlterClientQuotas:
    user = (EntityPart("user", f"twin-{number}"),)
    ops = (QuotaOp("producer_byte_rate", 1024.0),)
    return AlterClientQuotas((QuotaAlteration(user, ops),))


# By broker, once it is registered.
_EPOCHS: Final[dict[int, int]] = {}


def heartbeat(broker_id: int) -> BrokerHeartbeat:
    """It has everything, and wants to serve."""
    return BrokerHeartbeat(
        broker_id=broker_id,
        broker_epoch=_EPOCHS[broker_id],
        current_metadata_offset=Offset(1_000),
        want_fence=False,
    )


# In the order in which they are tried: number 1 in an envelope, number 2 by its own method.
WRITES: Final[dict[str, Callable[[int], WriteRequest]]] = {
    "RegisterBroker": registration,
    "BrokerHeartbeat": heartbeat,
    "CreateTopics": lambda number: CreateTopics((NewTopic(f"twin-{number}", 1, 1),)),
    "IncrementalAlterConfigs": change,
    "AlterClientQuotas": quota,
    "AlterPartition": lambda number: AlterPartition(
        broker_id=number, broker_epoch=_EPOCHS[number], topics=()
    ),
    "ElectLeaders": lambda _: ElectLeaders(ElectionType.PREFERRED, every_partition=True),
}
READS: Final[dict[str, Callable[[int], ReadRequest]]] = {
    "ListTopics": lambda _: ListTopics(),
    "DescribeTopics": lambda number: DescribeTopics((f"twin-{number}",)),
    "DescribeConfigs": lambda number: DescribeConfigs((resource(number),)),
    "ListBrokers": lambda _: ListBrokers(),
    "DescribeClientQuotas": lambda _: DescribeClientQuotas(),
}
ENDINGS: Final[dict[str, Callable[[int], WriteRequest]]] = {
    "DeleteTopics": lambda number: DeleteTopics((f"twin-{number}",)),
    "UnregisterBroker": lambda number: UnregisterBroker(number),
}


def alike(message: Any) -> Any:  # noqa: ANN401 - of any reply
    """The part that has to be the same in two replies."""

    def stripped(value: Any) -> Any:  # noqa: ANN401
        if isinstance(value, dict):
            return {key: stripped(each) for key, each in value.items() if key not in _OWN}
        if isinstance(value, list):
            return [stripped(each) for each in value]
        return value.replace("twin-2", "twin-1") if isinstance(value, str) else value

    return stripped(MessageToDict(message))


def message_of(request: Any) -> Any:  # noqa: ANN401 - of any request
    """A request as the message of its name."""
    message = getattr(pb, type(request).__name__)()
    convert.fill_message(message, request)
    return message


async def in_an_envelope(stub: Any, request: Any, *, is_write: bool) -> Any:  # noqa: ANN401
    if is_write:
        response = await stub.Write(convert.write_request(request), timeout=WAIT_S)
        (holder,) = response.results
    else:
        envelope = convert.read_request(request, min_offset=0, current=True, timeout_ms=0)
        holder = await stub.Read(envelope, timeout=WAIT_S)
    assert holder.error == 0, holder.message
    return getattr(holder, holder.WhichOneof("reply"))


def test_every_method_is_tried() -> None:
    own = {method.name for method in CONTROLLER.methods if not takes_any(method)}
    assert own == {*WRITES, *READS, *ENDINGS}


async def test_each_method_answers_as_its_envelope_does(properties: dict[str, str]) -> None:
    config = read_config(properties, {})
    node = Node(config, HealthServer(chosen()))
    await node.start()
    server = f"{config.peers.bound.host}:{config.peers.bound.port}"
    try:
        async with asyncio.timeout(WAIT_S), grpc.aio.insecure_channel(server) as channel:
            stub: Any = controller_pb2_grpc.ControllerStub(channel)
            while not node.metrics()["active_controller"]:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.01)
            for name, make in (*WRITES.items(), *READS.items(), *ENDINGS.items()):
                is_write = name not in READS
                enveloped = await in_an_envelope(stub, make(1), is_write=is_write)
                # A change is made twice, to two that are alike; the same is read twice.
                message = message_of(make(2 if is_write else 1))
                if not is_write:
                    message.options.current = True
                alone = await getattr(stub, name)(message, timeout=WAIT_S)
                assert type(alone) is type(enveloped)
                assert alike(alone) == alike(enveloped), name
                assert "error" not in str(MessageToDict(alone))
                if name == "RegisterBroker":
                    _EPOCHS.update({1: enveloped.broker_epoch, 2: alone.broker_epoch})
    finally:
        await node.stop()
