"""Records as JSON, with Kafka's names."""

from __future__ import annotations

import pytest

from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange, encode_control
from quorate.records.ids import DirectoryId, NodeId, ReplicaKey, TopicId
from quorate.records.json_format import control_to_json, record_to_json
from quorate.records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord, UnknownRecord
from quorate.records.voters import Endpoint, Voter, VoterSet

UUID = bytes(15) + b"\x01"
NAME = "AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_record_has_kafkas_type_and_field_names() -> None:
    record = FeatureLevelRecord(name="metadata.version", feature_level=30)
    assert record_to_json(record, 0) == {
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": "metadata.version", "featureLevel": 30},
    }
    topic = TopicRecord(name="t", topic_id=TopicId(UUID))
    assert record_to_json(topic, 0)["data"] == {"name": "t", "topicId": NAME}


def test_fields_of_other_versions_and_tags_at_their_default_are_left_out() -> None:
    record = PartitionRecord(
        partition_id=1,
        topic_id=TopicId(UUID),
        replicas=(),
        isr=(),
        leader=NodeId(-1),
        leader_epoch=0,
        partition_epoch=0,
    )
    old, new = record_to_json(record, 0)["data"], record_to_json(record, 2)["data"]
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    assert "directories" not in old
    assert new["directories"] == []
    assert "leaderRecoveryState" not in new


def test_control_records_have_their_labels() -> None:
    change = LeaderChange(NodeId(1), (NodeId(1), NodeId(2)), (NodeId(2),))
    assert control_to_json(*encode_control(change)) == (
        "LeaderChange: ",
        {
            "version": 0,
            "leaderId": 1,
            "voters": [{"voterId": 1}, {"voterId": 2}],
            "grantingVoters": [{"voterId": 2}],
        },
    )
    assert control_to_json(*encode_control(KRaftVersion(1))) == (
        "KRaftVersion ",
        {"version": 0, "kRaftVersion": 1},
    )
    key = ReplicaKey(NodeId(1), DirectoryId(UUID))
    voters = KRaftVoters(VoterSet((Voter(key, (Endpoint("GRPC", "h", 1),)),)))
    assert control_to_json(*encode_control(voters))[1]["voters"] == [
        {
            "voterId": 1,
            "voterDirectoryId": NAME,
            "endpoints": [{"name": "GRPC", "host": "h", "port": 1}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
    ]


def test_what_is_not_known_is_shown_or_refused() -> None:
    unknown = record_to_json(UnknownRecord(99, 0, b"\x01"), 0)
    assert unknown == {"type": "UNKNOWN_RECORD_99", "version": 0, "data": "AQ=="}
    with pytest.raises(ValueError, match="type 9"):
        control_to_json(b"\x00\x00\x00\x09", b"\x00\x00")
