"""The control records at the start of an epoch, and the leader's own corrected entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.records.control import ControlRecord, KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.voters import Voter

if TYPE_CHECKING:
    from quorate.raft.replica import Replica
    from quorate.records.ids import NodeId


def append_epoch_start(replica: Replica, granted: tuple[NodeId, ...]) -> None:
    """Append LeaderChange; also version and voters if no log or snapshot has them (KIP-853).

    The voters are also appended if this voter's own entry is out of date: no other replica could
    report that.
    """
    ids = tuple(voter.key.node_id for voter in replica.voters)
    records: list[ControlRecord] = [LeaderChange(replica.node_id, ids, granted)]
    drifted = drifted_entry(replica)
    voters = replica.voters.with_voter(drifted) if drifted is not None else replica.voters
    if replica.log.kraft_version > 0 and replica.log.voters_offset < 0:
        records += [KRaftVersion(replica.log.kraft_version), KRaftVoters(voters)]
    elif replica.log.kraft_version > 0 and drifted is not None:
        records.append(KRaftVoters(voters))
    replica.append_control(*records)


def drifted_entry(replica: Replica) -> Voter | None:
    """The up-to-date entry of this voter; None if it is up to date, or if this is not a voter.

    Listeners of other names are kept: another program may serve them on this directory. Duplicate
    names are dropped.
    """
    entry = replica.voters.voter(replica.key)
    if entry is None:
        return None
    named = {endpoint.name: endpoint for endpoint in entry.endpoints}
    named |= {endpoint.name: endpoint for endpoint in replica.config.endpoints}
    current = Voter(replica.key, tuple(named.values()))
    return None if current == entry else current
