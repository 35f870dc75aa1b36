"""The control records with which a new leader starts its epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.control import ControlRecord, KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId


def append_epoch_start(replica: Replica, granted: tuple[NodeId, ...]) -> None:
    """LeaderChange; version and voters when no log or snapshot holds them yet (KIP-853).

    And the voters when this one's own entry has drifted from what it is: nobody else could tell it
    so.
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
    """What this voter's entry should be; None when it is, or when this is no voter.

    Listeners of other names stay: another program may serve them on this directory. A name that
    stands in an entry twice is left once.
    """
    entry = replica.voters.voter(replica.key)
    if entry is None:
        return None
    named = {endpoint.name: endpoint for endpoint in entry.endpoints}
    named |= {endpoint.name: endpoint for endpoint in replica.config.endpoints}
    current = Voter(replica.key, tuple(named.values()))
    return None if current == entry else current
