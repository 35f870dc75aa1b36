"""The control records with which a new leader starts its epoch, and its own corrected entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.control import ControlRecord, KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId


def append_epoch_start(replica: Replica, granted: tuple[NodeId, ...]) -> None:
    """Append LeaderChange; version and voters if no log or snapshot holds them yet (KIP-853).

    Also the voters if this voter's own entry is out of date: no other replica could report that.
    """
    r = replica
    ids = tuple(voter.key.node_id for voter in r.voters)
    records: list[ControlRecord] = [LeaderChange(r.node_id, ids, granted)]
    drifted = drifted_entry(r)
    voters = r.voters.with_voter(drifted) if drifted is not None else r.voters
    if r.log.kraft_version > 0 and r.log.voters_offset < 0:
        records += [KRaftVersion(r.log.kraft_version), KRaftVoters(voters)]
    elif r.log.kraft_version > 0 and drifted is not None:
        records.append(KRaftVoters(voters))
    r.append_control(*records)


def drifted_entry(replica: Replica) -> Voter | None:
    """The up-to-date entry of this voter; None if it is up to date, or if this is not a voter.

    Listeners of other names stay: another program may serve them on this directory. A name that
    an entry holds twice is kept once.
    """
    entry = replica.voters.voter(replica.key)
    if entry is None:
        return None
    named = {endpoint.name: endpoint for endpoint in entry.endpoints}
    named |= {endpoint.name: endpoint for endpoint in replica.config.endpoints}
    current = Voter(replica.key, tuple(named.values()))
    return None if current == entry else current
