from __future__ import annotations

from quorate.raft import api, messages
from quorate.raft.trace_events import TraceEvent, TraceEventKind
from quorate.records.errors import ErrorCode
from quorate.records.ids import (
    CallId,
    ClusterId,
    DirectoryId,
    Epoch,
    Millis,
    NodeId,
    Offset,
    OffsetAndEpoch,
    ReplicaKey,
    ReplyToken,
)
from quorate.sim.transcript import Transcript, format_change, format_effect, format_value

KEY = ReplicaKey(NodeId(2), DirectoryId(bytes(16)))
END = OffsetAndEpoch(epoch=Epoch(4), offset=Offset(17))
NOTE = TraceEvent(TraceEventKind.ROLE_TAKEN, "no fetch from leader 1 for 2000 ms", {"epoch": 4})
VOTE = messages.VoteRequest(
    cluster_id=ClusterId("c"),
    voter=KEY,
    replica=KEY,
    replica_epoch=Epoch(4),
    last=END,
    pre_vote=True,
)


def test_a_step_is_one_line_then_why_then_what() -> None:
    transcript = Transcript()
    request = api.SendRequest(CallId(1), api.Peer(NodeId(3), "h", 1), VOTE)
    update = api.Update((request,), None, (NOTE,))
    transcript.add(2_000_999, NodeId(2), api.TimerFired(), update)
    assert transcript.tail() == (
        "[  2000] 2 > TimerFired\n"
        "             no fetch from leader 1 for 2000 ms\n"
        "             SendRequest to 3 Vote(pre_vote, epoch=4, candidate=2, last=17@4)"
    )


def test_only_the_last_lines_are_kept() -> None:
    transcript = Transcript(keep=2)
    for number in range(5):
        transcript.add(0, None, f"remark {number}")
    assert transcript.tail() == "[     0] * > remark 3\n[     0] * > remark 4"
    assert transcript.count == 5


def test_the_digest_depends_on_every_line() -> None:
    digests = []
    for first in ("one", "another"):
        transcript = Transcript(keep=1, digest=True)
        transcript.add(0, None, first)
        transcript.add(0, None, "last")
        digests.append(transcript.hexdigest())
    assert digests[0] != digests[1]


def test_defaults_addresses_and_bytes_are_left_out() -> None:
    info = messages.LeaderInfo(NodeId(1), Epoch(4))
    answer = messages.FetchResponse(error=ErrorCode.NONE, leader=info, high_watermark=Offset(5))
    text = "SendReply 9 FetchResponse(error=NONE, leader=1@4, high_watermark=5)"
    assert format_effect(api.SendReply(ReplyToken(9), answer)) == text
    assert format_value(api.ShutdownRequested(Millis(5))) == "ShutdownRequested(timeout_ms=5)"
    assert format_value(b"abc") == "3 B"


def test_what_an_operator_asks_for_has_directory_ids_as_people_write_them() -> None:
    request = messages.RemoveRaftVoterRequest(
        cluster_id=ClusterId("c"), voter=KEY, timeout_ms=Millis(3000), force=True
    )
    text = "RemoveRaftVoter(voter=2:AAAAAAAAAAAAAAAAAAAAAA, timeout_ms=3000, force)"
    assert format_change(request) == text
