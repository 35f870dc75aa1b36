"""Measure the conversions between values and bytes on a write's way, without a socket.

    python -m tests.bench.conversions [--beside CHECKOUT] [--rounds N]

Each step works on 64 values at a time. Processor time of one thread, of one value; with another
checkout the two take turns in one run, each in a process of its own, and the ratio tells.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from quorate.controller.brokers import messages as of_brokers
from quorate.controller.configs import messages as of_configs
from quorate.controller.features import messages as of_features
from quorate.controller.features.levels import encode_at
from quorate.controller.topics import messages as of_topics
from quorate.raft import messages as m
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    ReplicaKey,
    TopicId,
)
from quorate.records.metadata import (
    METADATA_VERSION_LATEST,
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    decode_record,
)
from quorate.records.voters import Endpoint
from quorate.rpc.convert import controller as convert
from quorate.rpc.convert import raft as convert_raft
from quorate.rpc.gen.controller.v1 import controller_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from quorate.controller.request_types import WriteReply, WriteRequest

COUNT: Final = 64
_UUID: Final = bytes(range(16))
_ID: Final = TopicId(_UUID)
# In one turn of one step: long enough for the clock, short enough for both to see the same machine.
_REPEATS: Final = 20


def _resource(index: int) -> of_configs.ConfigResource:
    return of_configs.ConfigResource(of_configs.ResourceType.TOPIC, f"topic-{index}")


def _change(index: int) -> of_configs.IncrementalAlterConfigs:
    operation = of_configs.AlterOperation.SET
    change = of_configs.ConfigChange("retention.ms", operation, str(100_000 + index))
    return of_configs.IncrementalAlterConfigs(
        (of_configs.ConfigAlteration(_resource(index), (change,)),)
    )


def _heartbeat(index: int) -> of_brokers.BrokerHeartbeat:
    return of_brokers.BrokerHeartbeat(
        broker_id=index, broker_epoch=100 + index, current_metadata_offset=Offset(1000 + index)
    )


def _registration(index: int) -> of_brokers.RegisterBroker:
    return of_brokers.RegisterBroker(
        broker_id=index,
        incarnation_id=_UUID,
        cluster_id=ClusterId("c" * 22),
        listeners=(of_brokers.Listener("PLAINTEXT", "host", 9092),),
        features=(of_features.FeatureRange("metadata.version", 7, 30),),
        log_dirs=(_UUID,),
    )


_REQUESTS: Final[dict[str, Callable[[int], WriteRequest]]] = {
    "change of a setting": _change,
    "new topic": lambda index: of_topics.CreateTopics(
        (of_topics.NewTopic(f"topic-{index}", 1, 3),)
    ),
    "heartbeat": _heartbeat,
    "registration": _registration,
}
_REPLIES: Final[dict[str, Callable[[int], WriteReply]]] = {
    "change of a setting": lambda index: of_configs.IncrementalAlterConfigsReply(
        (of_configs.AlteredResource(_resource(index)),)
    ),
    "new topic": lambda index: of_topics.CreateTopicsReply(
        (
            of_topics.CreatedTopic(
                f"topic-{index}", topic_id=_ID, partitions=1, replication_factor=3
            ),
        )
    ),
    "heartbeat": lambda _: of_brokers.BrokerHeartbeatReply(is_caught_up=True, is_fenced=False),
    "registration": lambda index: of_brokers.RegisterBrokerReply(broker_epoch=index),
}
_RECORDS: Final[dict[str, Callable[[int], Any]]] = {
    "ConfigRecord": lambda index: ConfigRecord(
        resource_type=2, resource_name=f"topic-{index}", name="retention.ms", value=f"1{index}"
    ),
    "TopicRecord": lambda index: TopicRecord(name=f"topic-{index}", topic_id=_ID),
    "PartitionRecord": lambda index: PartitionRecord(
        partition_id=index,
        topic_id=_ID,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(DirectoryId(_UUID),) * 3,
    ),
    "PartitionChangeRecord": lambda index: PartitionChangeRecord(
        partition_id=index, topic_id=_ID, isr=(1, 2), leader=2
    ),
}


def _steps() -> Iterator[tuple[str, Callable[[], object]]]:
    for what, request in _REQUESTS.items():
        data = [
            convert.write_request(request(index), 70_000 + index).SerializeToString()
            for index in range(COUNT)
        ]
        yield f"request: {what}", partial(_read, data)
    for what, reply in _REPLIES.items():
        yield f"reply: {what}", partial(_acknowledged, [reply(index) for index in range(COUNT)])
    for what, record in _RECORDS.items():
        records = [record(index) for index in range(COUNT)]
        yield f"{what}, encoded", partial(_encoded, records)
        yield f"{what}, decoded", partial(_decoded, _encoded(records))
    yield from _fetch_steps()


def _read(data: list[bytes]) -> list[Any]:
    return [convert.request_in(pb.WriteRequest.FromString(each), "request") for each in data]


def _encoded(records: list[Any]) -> list[bytes]:
    return [encode_at(METADATA_VERSION_LATEST, each) for each in records]


def _decoded(values: list[bytes]) -> list[Any]:
    return [decode_record(each) for each in values]


def _fetch_steps() -> Iterator[tuple[str, Callable[[], object]]]:
    """Messages that pass between a leader and a follower for a commit."""
    listeners = (Endpoint("GRPC", "host", 9094), Endpoint("CONTROLLER", "host", 9093))
    fetch = m.FetchRequest(
        cluster_id=ClusterId("c" * 22),
        replica=ReplicaKey(NodeId(2), DirectoryId(_UUID)),
        current_leader_epoch=Epoch(3),
        fetch_offset=Offset(1000),
        last_fetched_epoch=Epoch(3),
        max_wait_ms=Millis(500),
        max_bytes=8 << 20,
        high_watermark=Offset(990),
        replica_endpoints=listeners,
        read_round=9,
    )
    answer = m.FetchResponse(
        error=ErrorCode.NONE,
        leader=m.LeaderInfo(NodeId(1), Epoch(3), listeners),
        high_watermark=Offset(1000),
        log_start_offset=Offset(0),
        records=m.FetchedBatches(bytes(5000), ()),
        read_round=9,
    )
    asked, answered = convert_raft.pb_fetch_request(fetch), convert_raft.pb_fetch_response(answer)
    yield "Fetch, read", lambda: [convert_raft.fetch_request(asked) for _ in range(COUNT)]
    yield (
        "its answer, read",
        lambda: [
            convert_raft.fetch_response(answered, lambda data: m.FetchedBatches(data, ()))
            for _ in range(COUNT)
        ],
    )


def _acknowledged(made: list[Any]) -> bytes:
    response = pb.WriteResponse(first_sequence=70_000, last_sequence=70_000 + COUNT - 1)
    for reply in made:
        convert.put_write_reply(response.results.add(), reply)
    return response.SerializeToString()


def _work() -> None:
    """Takes the name of a step from each line, and answers with its time of one value."""
    steps = dict(_steps())
    for line in sys.stdin:
        step = steps[line.rstrip("\n")]
        began_ns = time.process_time_ns()
        for _ in range(_REPEATS):
            step()
        print((time.process_time_ns() - began_ns) / (_REPEATS * COUNT * 1000), flush=True)


class _Worker:
    """A process that works with the code of one checkout."""

    def __init__(self, checkout: Path) -> None:
        # Each works with its own steps: where values are defined may have changed.
        self._process = subprocess.Popen(
            [sys.executable, str(checkout / "tests/bench/conversions.py"), "--work"],
            env={**os.environ, "PYTHONPATH": str(checkout / "services")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def time_us(self, step: str) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beside", type=Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        _work()
        return
    ours = _Worker(Path(__file__).parents[2])
    theirs = _Worker(arguments.beside or Path(__file__).parents[2])
    print(f"{'':32} {'beside':>9} {'here':>9}   ratio")
    for name, _ in _steps():
        # The first turn warms both up.
        rounds = [(theirs.time_us(name), ours.time_us(name)) for _ in range(arguments.rounds + 1)]
        before, after = (median(column) for column in zip(*rounds[1:], strict=True))
        ratios = sorted(b / a for a, b in rounds[1:])
        spread = f"{median(ratios):.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}]"
        print(f"{name:32} {before:6.2f} us {after:6.2f} us   {spread}")
    ours.close()
    theirs.close()


if __name__ == "__main__":
    main()
