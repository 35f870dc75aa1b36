"""A log written by hand with all the unusual events and errors that a real log may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.pipeline.log_frames import Log

if TYPE_CHECKING:
    from tests.pipeline.log_frames import Row

SECOND_MS = 1000
FLAPS = 50


def voters(**of: tuple[str, int]) -> dict[str, Any]:
    """A set of voters: `v1=(directory, port)`."""
    return {
        "version": 0,
        "voters": [
            {
                "voterId": int(name[1:]),
                "voterDirectoryId": directory,
                "endpoints": [{"name": "CONTROLLER", "host": f"c{name[1:]}", "port": port}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for name, (directory, port) in of.items()
        ],
    }


def broker(number: int, epoch: int, *, fenced: bool = True) -> dict[str, Any]:
    """A registration."""
    return {
        "brokerId": number,
        "isMigratingZkBroker": False,
        "incarnationId": f"incarnation-{epoch}",
        "brokerEpoch": epoch,
        "endPoints": [
            {"name": "SSL", "host": f"b{number}", "port": 9093, "securityProtocol": 1},
            {"name": "PLAINTEXT", "host": f"b{number}", "port": 9092, "securityProtocol": 0},
        ],
        "features": [],
        "rack": None if number == 1 else f"rack-{number}",
        "fenced": fenced,
        "logDirs": [f"dir-{number}"],
    }


def partition(topic: str, number: int, *replicas: int, **other: Any) -> dict[str, Any]:  # noqa: ANN401 - of records
    """A PartitionRecord, with all in sync unless told otherwise."""
    return {
        "partitionId": number,
        "topicId": topic,
        "replicas": list(replicas),
        "isr": list(replicas),
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": replicas[0],
        "leaderEpoch": 4,
        "partitionEpoch": 9,
        "directories": [f"dir-{replica}" for replica in replicas],
        **other,
    }


def setting(name: str, value: str | None, *, of: str = "t", kind: int = 2) -> dict[str, Any]:
    """A ConfigRecord."""
    return {"resourceType": kind, "resourceName": of, "name": name, "value": value}


def entry(acl_id: str, operation: int = 3) -> dict[str, Any]:
    """An ACL."""
    return {
        "id": acl_id,
        "resourceType": 2,
        "resourceName": "t",
        "patternType": 3,
        "principal": "User:eve",
        "host": "*",
        "operation": operation,
        "permissionType": 2,
    }


class Hostile:
    """Writes the log; each method writes one chapter."""

    def __init__(self) -> None:
        self.log = Log(offset=100, epoch=3, source_node=1)
        self.log.snapshot(
            [
                ("KRaftVersionRecord", {"version": 0, "kRaftVersion": 1}),
                ("VotersRecord", voters(v1=("a", 1), v2=("b", 1), v3=("c", 1))),
                ("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 30}),
                *(("RegisterBrokerRecord", broker(n, n, fenced=n == 3)) for n in (1, 2, 3)),
                ("TopicRecord", {"name": "t", "topicId": "T1"}),
                ("PartitionRecord", partition("T1", 0, 1, 2, 3, isr=[1, 2])),
                ("PartitionRecord", partition("T1", 1, 3, 2, leader=-1, isr=[3])),
                ("TopicRecord", {"name": "untouched", "topicId": "T0"}),
                ("PartitionRecord", partition("T0", 0, 1, eligibleLeaderReplicas=[2, 3])),
                ("ConfigRecord", setting("retention.ms", "1")),
                ("ConfigRecord", setting("ssl.key.password", "hunter1", of="", kind=4)),
                ("AccessControlEntryRecord", entry("A0")),
            ],
            taken_ms=40 * SECOND_MS,
        )
        for chapter in (
            self.changes_of_voters,
            self.flaps,
            self.controlled_shutdown,
            self.isr_to_one_and_to_nobody,
            self.reassignment,
            self.topic_made_again,
            self.settings_and_acls,
            self.transactions,
            self.what_nobody_knows,
            self.clock_behind,
            self.no_end,
        ):
            self.log.at_ms += 10 * SECOND_MS
            chapter()

    @property
    def rows(self) -> list[Row]:
        """The log."""
        return self.log.rows

    def _add(self, kind: str, **data: Any) -> None:  # noqa: ANN401 - of records
        self.log.add(kind, data)

    def _change(self, topic: str, number: int, **data: Any) -> None:  # noqa: ANN401 - of records
        self.log.at_ms += SECOND_MS
        self._add("PartitionChangeRecord", partitionId=number, topicId=topic, **data)

    def _broker(self, number: int, epoch: int, **data: Any) -> None:  # noqa: ANN401 - of records
        self.log.at_ms += SECOND_MS
        named = {"brokerId": number, "brokerEpoch": epoch}
        self._add("BrokerRegistrationChangeRecord", **named, **data)

    def changes_of_voters(self) -> None:
        """A voter is added, one is removed, one moves, and two swap their disks.

        In between, a set is written that differs from its predecessor only by its order.
        """
        self.log.lead(2, [1, 2, 3], epoch=4)
        for each in (
            voters(v1=("a", 1), v2=("b", 1), v3=("c", 1), v4=("d", 1)),
            voters(v1=("a", 1), v3=("c", 1), v4=("d", 1)),
            voters(v1=("a", 1), v3=("c", 2), v4=("d", 1)),
            voters(v4=("d", 1), v3=("c", 2), v1=("a", 1)),
            voters(v1=("d", 1), v3=("c", 2), v4=("a", 1)),
        ):
            self.log.at_ms += SECOND_MS
            self.log.add("VotersRecord", each, is_control=True)
        self.log.at_ms += 7 * SECOND_MS
        self.log.lead(3, [1, 3, 4], epoch=8)

    def flaps(self) -> None:
        """A broker that is fenced fifty times, and then a few times too far apart to count."""
        self._broker(3, 3, fenced=-1)
        for wait_s in (*(1,) * FLAPS, 61, 61, 61):
            self.log.at_ms += wait_s * SECOND_MS
            self._broker(3, 3, fenced=1)
            self._broker(3, 3, fenced=-1)

    def controlled_shutdown(self) -> None:
        """A broker shuts down, is fenced, returns, restarts before a fence, and is unregistered."""
        self._broker(2, 2, inControlledShutdown=1)
        self._broker(2, 2, fenced=1)
        for epoch in (self.log.offset, self.log.offset + 2):
            self._add("RegisterBrokerRecord", **broker(2, epoch))
            self._broker(2, epoch, fenced=-1)
        self._add("FenceBrokerRecord", id=2, epoch=self.log.offset - 2)
        self._add("UnregisterBrokerRecord", brokerId=2, brokerEpoch=self.log.offset - 3)
        self._broker(1, 1, logDirs=["dir-1", "dir-9"], cordonedLogDirs=["dir-9"])

    def isr_to_one_and_to_nobody(self) -> None:
        """The ISR shrinks to one, its leader fails, another is elected uncleanly, all return."""
        self._change("T1", 0, isr=[1])
        self._change("T1", 0, leader=-1)
        self._change("T1", 0, eligibleLeaderReplicas=[2], lastKnownElr=[1])
        self._change("T1", 0, isr=[3], leader=3, leaderRecoveryState=1)
        self._change("T1", 0, leaderRecoveryState=0)
        self._change("T1", 0, leader=3)
        self._change("T1", 0, isr=[3, 2, 1], eligibleLeaderReplicas=[], lastKnownElr=[])
        self._add("ClearElrRecord", topicName="")

    def reassignment(self) -> None:
        """One with replicas on their way, which is reported twice, and one without."""
        for _ in range(2):
            self._change("T1", 0, replicas=[3, 2, 1, 4], addingReplicas=[4], removingReplicas=[1])
            self._change("T1", 0, isr=[3, 2, 1, 4])
        self._change("T1", 0, isr=[3, 2, 4], replicas=[3, 2, 4], leader=4)
        self._change("T1", 0, addingReplicas=[], removingReplicas=[])
        self._change("T1", 0, replicas=[2, 4, 3])
        self._change("T1", 0, replicas=[4, 2, 1], isr=[4, 2, 1])

    def topic_made_again(self) -> None:
        """A topic is deleted, with its configs, and created with another id; this happens twice."""
        for topic in ("T1", "T2"):
            self.log.at_ms += SECOND_MS
            self._add("RemoveTopicRecord", topicId=topic)
            made = f"T{int(topic[1:]) + 1}"
            self._add("TopicRecord", name="t", topicId=made)
            if made == "T2":
                self._add("ConfigRecord", **setting("retention.ms", "2"))
            self._add("PartitionRecord", **partition(made, 0, 1, 3))

    def settings_and_acls(self) -> None:
        """Set, set again as it was, changed, removed, removed again, set once more."""
        for value in ("5", "5", "6", None, None, ""):
            self.log.at_ms += SECOND_MS
            self._add("ConfigRecord", **setting("segment.ms", value))
        self._add("ConfigRecord", **setting("ssl.key.password", "hunter2", of="", kind=4))
        self._add("ConfigRecord", **setting("ssl.key.password", None, of="", kind=4))
        self._add("AccessControlEntryRecord", **entry("A1"))
        self._add("AccessControlEntryRecord", **entry("A2", operation=4))
        self._add("RemoveAccessControlEntryRecord", id="A0")
        self._add("RemoveAccessControlEntryRecord", id="A2")

    def _in_a_transaction(self, *, mark: str) -> None:
        self._add("BeginTransactionRecord", name=mark)
        self._add("TopicRecord", name=f"by {mark}", topicId=mark)
        self._add("PartitionRecord", **partition(mark, 0, 1, 3))
        self._change("T3", 0, isr=[3], leader=3)
        self._add("ConfigRecord", **setting("retention.ms", f"by {mark}"))
        self._add("AccessControlEntryRecord", **entry(mark))
        self._add("RegisterBrokerRecord", **broker(1, self.log.offset))
        self._broker(3, 3, fenced=1)

    def transactions(self) -> None:
        """One that is aborted by the next leader, and one that is not."""
        self._in_a_transaction(mark="aborted")
        self.log.at_ms += 3 * SECOND_MS
        self.log.lead(1, [1, 3, 4], epoch=9)
        self._add("AbortTransactionRecord", reason="the leader is gone")
        self._in_a_transaction(mark="done")
        self._add("EndTransactionRecord")

    def what_nobody_knows(self) -> None:
        """A record without fields, a later type, an undecodable version, and damaged bytes."""
        self._add("NoOpRecord")
        self.log.add("Unknown(77)", {"payload": "AA=="})
        lost = self.log.add("NoOpRecord", {})
        told = '{"error": "version 9 of TopicRecord", "file": "x.log", "position": 7, "bytes": 9}'
        self.rows[-1] = lost._replace(record_type=None, record_version=None, payload=told)
        damage = self.log.add("NoOpRecord", {})
        told = '{"error": "CRC", "file": "w.log", "position": 5, "bytes": 80}'
        self.rows[-1] = damage._replace(
            crc_valid=False,
            record_type=None,
            record_version=None,
            key=None,
            value=None,
            payload=told,
        )

    def clock_behind(self) -> None:
        """A leader whose clock is a minute behind that of the one before."""
        self.log.at_ms -= 60 * SECOND_MS
        self.log.lead(4, [1, 3, 4], epoch=10)
        self._broker(3, 3, fenced=-1)
        self._change("T3", 0, isr=[3, 1])
        self._add("ConfigRecord", **setting("retention.ms", "late"))

    def no_end(self) -> None:
        """A transaction that is open at the end."""
        self._in_a_transaction(mark="open")
