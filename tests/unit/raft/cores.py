"""Cores in the roles that the tests of this package start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quorate.raft import api
from quorate.raft import messages as m
from quorate.raft.request_manager import RequestKind
from quorate.raft.roles import Leader
from quorate.records.control import KRaftVoters, LeaderChange
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
from quorate.records.voters import Endpoint, Voter, VoterSet
from tests.unit.raft.expecting import (
    WatchedCore,
    flushed,
    is_discovery,
    log_end,
    now_ms,
    own_key,
    told,
    unanswered,
)

if TYPE_CHECKING:
    from quorate.raft.core import RaftCore
    from quorate.raft.identity.rival_leader import Rival

CLUSTER = ClusterId("cluster")


class Midway:
    """Every draw is one half."""

    def random(self) -> float:
        return 0.5


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(NodeId(node_id), DirectoryId(bytes([node_id]) * 16))


def endpoints(node_id: int) -> tuple[Endpoint, ...]:
    return (Endpoint("GRPC", f"node-{node_id}", 9094),)


def peer(node_id: int) -> api.Peer:
    return api.Peer(NodeId(node_id), f"node-{node_id}", 9094)


def voters(*node_ids: int) -> VoterSet:
    return VoterSet.of(Voter(key(node_id), endpoints(node_id)) for node_id in node_ids)


def end(offset: int, epoch: int) -> OffsetAndEpoch:
    return OffsetAndEpoch(epoch=Epoch(epoch), offset=Offset(offset))


def progress(
    role: str,
    epoch: int,
    *,
    leader_id: int | None = None,
    epoch_start: int | None = None,
    high_watermark: int = 0,
) -> api.PublishProgress:
    """The progress published when a replica has assumed a role, or committed more in it."""
    return api.PublishProgress(
        role=role,
        epoch=Epoch(epoch),
        leader_id=None if leader_id is None else NodeId(leader_id),
        is_leader=role == "leader",
        epoch_start=None if epoch_start is None else Offset(epoch_start),
        high_watermark=Offset(high_watermark),
    )


def config(node_id: int = 1) -> api.RaftConfig:
    return api.RaftConfig(
        node_id=NodeId(node_id),
        directory_id=DirectoryId(bytes([node_id]) * 16),
        cluster_id=CLUSTER,
        endpoints=endpoints(node_id),
    )


def recovered(
    *node_ids: int,
    log_end: OffsetAndEpoch | None = None,
    epochs: tuple[m.EpochStart, ...] = (),
    election: m.ElectionState | None = None,
    remembered_end: OffsetAndEpoch | None = None,
    abstains: bool = False,
    rival: Rival | None = None,
) -> api.RecoveredState:
    """A log of batches with the bootstrap's voters, at kraft.version 1."""
    return api.RecoveredState(
        end=log_end or end(0, 0),
        epochs=epochs,
        voters=(m.VotersAt(Offset(-1), voters(*node_ids)),),
        kraft_versions=(m.KRaftVersionAt(Offset(-1), 1),),
        election=election or m.ElectionState(Epoch(0)),
        remembered_end=remembered_end,
        abstains=abstains,
        rival=rival,
    )


def started(node_id: int, state: api.RecoveredState) -> RaftCore:
    core = WatchedCore(config(node_id), state, Midway())
    core.start(Millis(0))
    return core


def unattached(node_id: int = 1, *node_ids: int) -> RaftCore:
    return started(node_id, recovered(*(node_ids or (1, 2, 3))))


def follower(node_id: int = 2, leader_id: int = 1, epoch: int = 1) -> RaftCore:
    """A follower that has not fetched yet; its Fetch is call 2, after the discovery."""
    core = unattached(node_id)
    begin(core, leader_id, epoch, now_ms=1)
    return core


def begin(core: RaftCore, leader_id: int, epoch: int, *, now_ms: int) -> api.Update:
    request = m.BeginQuorumEpochRequest(
        CLUSTER, own_key(core), NodeId(leader_id), Epoch(epoch), endpoints(leader_id)
    )
    return ask(core, request, now_ms=now_ms)


def ask(core: RaftCore, request: m.Request, *, now_ms: int, token: int = 1) -> api.Update:
    return core.step(api.RequestReceived(ReplyToken(token), request), Millis(now_ms))


def answer(
    core: RaftCore, call: CallId, response: m.PeerResponse | api.RequestFailure, *, now_ms: int
) -> api.Update:
    return core.step(api.ResponseReceived(call, response), Millis(now_ms))


def calls(update: api.Update) -> dict[int, tuple[CallId, m.PeerRequest]]:
    """The requests of an update by the node that they go to."""
    return {
        effect.to.node_id: (effect.call, effect.request)
        for effect in update.effects
        if isinstance(effect, api.SendRequest)
    }


def replies(update: api.Update) -> list[m.Response]:
    return [effect.response for effect in update.effects if isinstance(effect, api.SendReply)]


def said(update: api.Update) -> list[str]:
    """The words of its notes."""
    return [note.text for note in update.trace]


def successors(update: api.Update) -> list[int]:
    """The successors that a resigning leader names, best first; all voters get the same list."""
    told_all = {
        request.preferred_candidates
        for _, request in calls(update).values()
        if isinstance(request, m.EndQuorumEpochRequest)
    }
    (named,) = told_all
    assert named == tuple(key(one.node_id) for one in named)
    return [one.node_id for one in named]


def described(core: RaftCore, *, now_ms: int, token: int = 1000) -> m.DescribeQuorumResponse:
    """The response of a replica to a DescribeQuorum request."""
    (answer_,) = [
        reply
        for reply in replies(ask(core, m.DescribeQuorumRequest(), now_ms=now_ms, token=token))
        if isinstance(reply, m.DescribeQuorumResponse)
    ]
    return answer_


def memberships(update: api.Update) -> list[m.MembershipResponse]:
    return [reply for reply in replies(update) if isinstance(reply, m.MembershipResponse)]


def membership(update: api.Update) -> m.MembershipResponse:
    """The one answer to a change of the voters in an update."""
    (answer_,) = memberships(update)
    return answer_


def heed(core: RaftCore, node_id: int, *, now_ms: int) -> api.Update:
    """A voter answers the last BeginQuorumEpoch that it was sent: it follows this leader."""
    *_, call = [
        sent.call
        for sent in open_calls(core, RequestKind.BEGIN_QUORUM_EPOCH)
        if sent.to.node_id == node_id
    ]
    response = m.BeginQuorumEpochResponse(ErrorCode.NONE, leader_info(core))
    return answer(core, call, response, now_ms=now_ms)


def hand_over(core: RaftCore, to: int, *, now_ms: int, token: int = 7) -> api.Update:
    """Leadership is asked for another voter, which answers; the update of that answer."""
    request = m.TransferLeadershipRequest(CLUSTER, key(to))
    assert not memberships(ask(core, request, now_ms=now_ms, token=token))
    return heed(core, to, now_ms=now_ms)


def granted(epoch: int) -> m.VoteResponse:
    return m.VoteResponse(ErrorCode.NONE, m.LeaderInfo(None, Epoch(epoch)), vote_granted=True)


def refused(core: RaftCore) -> m.VoteResponse:
    """The rejection by a voter that knows as much of the leader as this one."""
    return m.VoteResponse(ErrorCode.NONE, leader_info(core), vote_granted=False)


def leader_info(core: RaftCore) -> m.LeaderInfo:
    """The leader that this replica has reported, with the endpoint of such a node."""
    leader_id = told(core).leader_id
    there = () if leader_id is None else endpoints(leader_id)
    return m.LeaderInfo(leader_id, told(core).epoch, there)


def lost_round(core: RaftCore) -> Millis:
    """Let time pass until it asks for pre-votes, all of which are refused; when it asked."""
    now, asked = now_ms(core), list[CallId]()
    update = core.step(api.TimerFired(), now)
    while not asked:
        assert update.wake_at_ms is not None
        now = max(update.wake_at_ms, now)
        update = core.step(api.TimerFired(), now)
        asked = [
            effect.call
            for effect in update.effects
            if isinstance(effect, api.SendRequest) and isinstance(effect.request, m.VoteRequest)
        ]
    assert told(core).role == "prospective"
    for call in asked:
        answer(core, call, refused(core), now_ms=now)
    assert told(core).role != "prospective"
    return now


def voted(update: api.Update) -> m.VoteResponse:
    """The answer to a request for a vote, the only one in an update."""
    (response,) = replies(update)
    assert isinstance(response, m.VoteResponse)
    return response


def part_of_election_timeout(share: int) -> int:
    return config().election_timeout_ms // share


def leader(node_id: int = 1, *node_ids: int) -> RaftCore:
    """The leader of epoch 1, elected at 2,000 ms, its first batch flushed."""
    return elected(unattached(node_id, *(node_ids or (1, 2, 3))))


def elected(core: RaftCore) -> RaftCore:
    """The replica leads the next epoch from 2,000 ms on, and its first batch is flushed."""
    epoch = told(core).epoch
    update = core.step(api.TimerFired(), Millis(2000))
    for asked_in in (epoch, epoch + 1):
        for _, (call, request) in sorted(calls(update).items()):
            if isinstance(request, m.VoteRequest) and request.replica_epoch == asked_in:
                update = answer(core, call, granted(asked_in), now_ms=2000)
                if calls(update):
                    # A majority has granted it, and the next thing is asked.
                    break
    flush(core, now_ms=2000)
    return core


def propose(core: RaftCore, *, now_ms: int = 2001, epoch: int = 1, token: int = 9) -> api.Update:
    """Two records of 70 bytes in all."""
    batch = api.ProposedBatch(b"x" * 70, 2)
    return core.step(api.RecordsProposed(ReplyToken(token), Epoch(epoch), batch), Millis(now_ms))


def append(core: RaftCore, voters: VoterSet, *, now_ms: int) -> api.Update:
    """Put another voter set into effect at a leader."""
    core.replica.timers.now = Millis(now_ms)
    core.leader_replication.append_voters(KRaftVoters(voters))
    return core.step(api.TimerFired(), Millis(now_ms))


def owing_a_flush(*node_ids: int) -> RaftCore:
    """A leader that has appended a batch at 2,001 ms which its disk does not confirm."""
    core = leader(1, *node_ids)
    propose(core)
    return core


def fetched(update: api.Update) -> m.FetchResponse:
    """The one answer to a Fetch in an update."""
    (response,) = [reply for reply in replies(update) if isinstance(reply, m.FetchResponse)]
    return response


def grown_up_leader(*node_ids: int) -> RaftCore:
    """As `leader`, and at 4,500 ms old enough to know who fetches: the others have all it has.

    They have answered its BeginQuorumEpoch, too.
    """
    ids = node_ids or (1, 2, 3)
    return grown_up(leader(ids[0], *ids), *ids[1:])


def grown_up(core: RaftCore, *others: int) -> RaftCore:
    """This leader at 4,500 ms: these voters have all that it has, and have answered it."""
    for token, node_id in enumerate(others, 100):
        ask(core, fetch(node_id, log_end(core).offset, told(core).epoch), now_ms=4400, token=token)
    for node_id in others:
        heed(core, node_id, now_ms=4400)
    return core


def echo(core: RaftCore, *node_ids: int, now_ms: int) -> api.Update:
    """These voters have all that there is, and the newest round; what the leader does then."""
    role = core.replica.role
    assert isinstance(role, Leader)
    end, epoch, read_round = log_end(core).offset, told(core).epoch, role.read_round
    for node_id in node_ids:
        request = fetch(node_id, end, epoch, read_round=read_round)
        ask(core, request, now_ms=now_ms, token=200 + node_id)
    return core.step(api.TimerFired(), Millis(now_ms))


def change(
    core: RaftCore,
    request: m.RemoveRaftVoterRequest,
    *,
    now_ms: int,
    token: int = 1,
    by: tuple[int, ...] = (2,),
) -> api.Update:
    """A voter is removed of a set of which these show that they fetch; the last update of it."""
    assert not memberships(ask(core, request, now_ms=now_ms, token=token))
    return echo(core, *by, now_ms=now_ms)


def flush(core: RaftCore, *, now_ms: int) -> api.Update:
    """The disk has confirmed all that it was given."""
    return core.step(flushed(core), Millis(now_ms))


def fetch(
    node_id: int,
    offset: int,
    last_epoch: int,
    *,
    epoch: int = 1,
    wait_ms: int = 500,
    read_round: int = 0,
) -> m.FetchRequest:
    return m.FetchRequest(
        cluster_id=CLUSTER,
        replica=key(node_id),
        current_leader_epoch=Epoch(epoch),
        fetch_offset=Offset(offset),
        last_fetched_epoch=Epoch(last_epoch),
        max_wait_ms=Millis(wait_ms),
        max_bytes=1024,
        high_watermark=Offset(0),
        replica_endpoints=endpoints(node_id),
        read_round=read_round,
    )


def vote(
    node_id: int, to: int, epoch: int, last: OffsetAndEpoch, *, pre_vote: bool = False
) -> m.VoteRequest:
    return m.VoteRequest(
        cluster_id=CLUSTER,
        voter=key(to),
        replica=key(node_id),
        replica_epoch=Epoch(epoch),
        last=last,
        pre_vote=pre_vote,
        replica_endpoints=endpoints(node_id),
    )


# --- followers that fetch -------------------------------------------------------------------------

LEADER = m.LeaderInfo(NodeId(1), Epoch(1), endpoints(1))
# Node 4 is to be added, and its answer to ApiVersions.
ADD = m.AddRaftVoterRequest(
    cluster_id=CLUSTER,
    voter=key(4),
    listeners=endpoints(4),
    timeout_ms=Millis(1000),
)
VERSIONS = m.ApiVersionsResponse(
    error=ErrorCode.NONE,
    cluster_id=CLUSTER,
    key=key(4),
    kraft_version_min=0,
    kraft_version_max=1,
)
# What the leader of epoch 1 has at first, and what comes next.
FIRST = m.FetchedBatches(
    b"batches",
    (
        m.BatchInfo(
            base_offset=Offset(0),
            last_offset=Offset(0),
            epoch=Epoch(1),
            control=(LeaderChange(NodeId(1), (), ()),),
        ),
        m.BatchInfo(base_offset=Offset(1), last_offset=Offset(4), epoch=Epoch(1)),
    ),
)
RECORD = m.BatchInfo(base_offset=Offset(5), last_offset=Offset(5), epoch=Epoch(1))


def batches(*infos: m.BatchInfo) -> m.FetchedBatches:
    return m.FetchedBatches(b"b", infos)


_KINDS: Final = {
    RequestKind.VOTE: m.VoteRequest,
    RequestKind.BEGIN_QUORUM_EPOCH: m.BeginQuorumEpochRequest,
    RequestKind.FETCH: m.FetchRequest,
    RequestKind.DISCOVERY: m.FetchRequest,
    RequestKind.FETCH_SNAPSHOT: m.FetchSnapshotRequest,
}


def open_calls(core: RaftCore, kind: RequestKind) -> list[api.SendRequest]:
    """The requests of that kind that have no answer yet."""
    return [
        sent
        for sent in unanswered(core)
        if isinstance(sent.request, _KINDS[kind])
        and is_discovery(sent.request) == (kind is RequestKind.DISCOVERY)
    ]


def under_way(core: RaftCore, kind: RequestKind = RequestKind.FETCH) -> CallId:
    """The one request of that kind that has no answer yet."""
    (sent,) = open_calls(core, kind)
    return sent.call


def fetch_answer(**parts: object) -> m.FetchResponse:
    """The response of the leader of epoch 1 to a Fetch."""
    return m.FetchResponse(error=ErrorCode.NONE, leader=LEADER, **parts)  # type: ignore[arg-type]


def heard(node_id: int = 2) -> RaftCore:
    """A follower without records whose leader has answered its Fetch at 1 ms."""
    core = follower(node_id)
    answer(core, under_way(core), fetch_answer(), now_ms=1)
    return core


def behind_its_disk(node_id: int = 2) -> RaftCore:
    """A follower that has appended five records at 2 ms which its disk does not confirm."""
    core = follower(node_id)
    answer(core, under_way(core), fetch_answer(records=FIRST), now_ms=2)
    return core


def hearing_until(core: RaftCore, until_ms: int) -> list[api.Update]:
    """The updates of a follower whose leader answers each of its Fetches, with nothing new."""
    updates = []
    for now in range(now_ms(core), until_ms, part_of_election_timeout(2)):
        updates.append(core.step(api.TimerFired(), Millis(now)))
        updates.append(answer(core, under_way(core), fetch_answer(), now_ms=now))
    return updates


def fed() -> RaftCore:
    """A follower that appended and flushed five records, three of them committed."""
    core = follower()
    answer(core, under_way(core), fetch_answer(records=FIRST, high_watermark=Offset(3)), now_ms=2)
    flush(core, now_ms=3)
    return core
