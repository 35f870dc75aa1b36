"""Recovers from loss of quorum: makes a single-voter quorum from the disks left.

See rule `quorum_loss_recovery`. A crash only interrupts it. Only an operator may request it:
records that only a majority of lost disks had are lost permanently. The order is: the plan; the log
under its old identity, repaired if damaged, then the new epoch with the new voter set; the new
identity, meta.properties last; the plan becomes the record.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.api import AppendToLog, ControlBatch, SaveElection
from quorate.raft.election.epoch_guard import EPOCH_ACCEPTED_MAX
from quorate.raft.messages import ElectionState
from quorate.raft.replication.batch_validation import EPOCHS_SKIPPED
from quorate.raft.replication.log_state import NO_VOTERS
from quorate.records.control import KRaftVersion, KRaftVoters, LeaderChange
from quorate.records.ids import Epoch, Offset, OffsetAndEpoch, ReplicaKey
from quorate.records.value_types import value_type
from quorate.storage import layout
from quorate.storage.disaster_recovery.recovery_plan import ConsultedLog, complete_plan
from quorate.storage.errors import StorageError
from quorate.storage.file_system import remove_durably
from quorate.storage.flushed_end import FlushedEndFile
from quorate.storage.log_store import LogStore
from quorate.storage.meta_properties import read_meta, write_meta
from quorate.storage.recovery.recovery import Examined, examine
from quorate.storage.storage_config import StorageConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.records.voters import Endpoint, VoterSet
    from quorate.storage.disaster_recovery.recovery_plan import RecoveryPlan
    from quorate.storage.file_system import FileSystem
    from quorate.storage.meta_properties import MetaProperties

_KRAFT_VERSION: Final = 1


@value_type
class SurvivingDirectory:
    """A surviving directory, as recovery examined it."""

    directory: str
    examined: Examined

    @property
    def meta(self) -> MetaProperties:
        return self.examined.meta

    @property
    def end(self) -> OffsetAndEpoch:
        """The end of the valid log, committed or not."""
        return self.examined.state.end

    @property
    def highest_end(self) -> OffsetAndEpoch:
        """The furthest end that this log is known to have had; records above `end` are lost."""
        return max(self.end, self.examined.log_decision.remembered_end or self.end)

    @property
    def epoch(self) -> Epoch:
        """The highest epoch in this directory."""
        election = self.examined.election
        return max(self.highest_end.epoch, election.epoch if election else Epoch(0))

    @property
    def voters(self) -> VoterSet:
        """The voter set in effect at the end of the valid log."""
        state = self.examined.state
        return state.voters[-1].voters if state.voters else NO_VOTERS

    @property
    def committed(self) -> Offset:
        """The offset known to be committed: a snapshot contains only committed records."""
        snapshots = self.examined.state.snapshots
        return snapshots[-1].snapshot_id.offset if snapshots else Offset(0)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints of this node in the voter set."""
        voter = self.voters.by_id(self.meta.node_id)
        return () if voter is None else voter.endpoints

    @property
    def witness(self) -> ConsultedLog:
        meta = self.meta
        return ConsultedLog(
            source=self.directory,
            key=ReplicaKey(meta.node_id, meta.directory_id),
            epoch=self.epoch,
            end=self.end,
            highest_end=self.highest_end,
        )


def inspect_directory(fs: FileSystem, directory: str, config: StorageConfig) -> SurvivingDirectory:
    """Examine a directory without changing it. Raises StorageError if it cannot be examined."""
    examined = examine(fs, directory, config)
    if examined.state.end.offset == 0:
        raise StorageError(
            f"{directory}: its log is empty, so there is nothing to recover: leave it out, or"
            " format a new quorum"
        )
    return SurvivingDirectory(directory, examined)


def longest_log(survivors: Sequence[SurvivingDirectory]) -> SurvivingDirectory:
    """Return the longest log, compared as in Vote (last epoch, then end); the first of equals."""
    return max(survivors, key=lambda survivor: survivor.end)


def new_epoch(epochs: Sequence[Epoch]) -> Epoch:
    """Return the epoch of the new quorum. Raises StorageError if no epoch is left."""
    epoch = Epoch(max(epochs) + EPOCHS_SKIPPED)
    if epoch > EPOCH_ACCEPTED_MAX:
        raise StorageError(f"epoch {max(epochs)} leaves no room above it: its disk is damaged")
    return epoch


def execute_plan(
    fs: FileSystem, directory: str, plan: RecoveryPlan, *, timestamp_ms: int
) -> OffsetAndEpoch:
    """Carry out a durable plan, from its beginning or from the point of interruption.

    Returns the new log end. Raises StorageError if the directory cannot be used; the plan then
    stays, and the command can be repeated.
    """
    # An earlier process may have died between a rename or a removal and its sync.
    fs.sync_dir(directory)
    fs.sync_dir(f"{directory}/{layout.LOG_DIR}")
    meta = read_meta(fs, f"{directory}/{layout.META_PROPERTIES}")
    if meta != plan.after:
        flushed = FlushedEndFile(fs, f"{directory}/{layout.FLUSHED_END}")
        entry = flushed.load()
        flushed.close()
        if entry is None or entry.directory_id != plan.after.directory_id:
            _begin_epoch(fs, directory, plan, timestamp_ms)
        _change_identity(fs, directory, plan)
    after = plan.after
    config = StorageConfig(
        node_id=after.node_id, cluster_id=after.cluster_id, directory_id=after.directory_id
    )
    examined = examine(fs, directory, config)
    state = examined.state
    if state.remembered_end is not None or state.voters[-1].voters != plan.voters:
        raise StorageError(
            f"{directory}: the log ends at {state.end} and does not hold what was just written:"
            " the disk is not to be trusted, begin again with a copy on another one"
        )
    complete_plan(fs, directory, plan)
    return state.end


def _begin_epoch(fs: FileSystem, directory: str, plan: RecoveryPlan, timestamp_ms: int) -> None:
    """Repair the log, and append the new voter set in the new epoch: flushed on return."""
    config = StorageConfig(node_id=plan.before.node_id)
    store, recovered = LogStore.open(fs, directory, config, is_rescue=True)
    try:
        end = recovered.state.end
        if end.epoch == plan.epoch:
            return
        election = ElectionState(plan.epoch, plan.after.node_id, plan.key)
        # Saved before the log, which may not be ahead of it.
        store.save_election(SaveElection(election, _KRAFT_VERSION, plan.voters))
        alone = (plan.after.node_id,)
        records = (
            LeaderChange(plan.after.node_id, alone, alone),
            KRaftVersion(_KRAFT_VERSION),
            KRaftVoters(plan.voters),
        )
        new_end = OffsetAndEpoch(epoch=plan.epoch, offset=Offset(end.offset + len(records)))
        effect = AppendToLog(end.offset, new_end, ControlBatch(records))
        store.append(effect, timestamp_ms=timestamp_ms)
        ticket = store.log.begin_flush()
        assert ticket is not None, "there is a batch to flush"
        ticket.run()
        store.log.finish_flush(ticket)
    finally:
        store.close()


def _change_identity(fs: FileSystem, directory: str, plan: RecoveryPlan) -> None:
    """Give the disk a new identity; meta.properties last, durable on return.

    The flushed end is changed first: under the new id it proves that the new epoch is on the disk.
    """
    flushed = FlushedEndFile(fs, f"{directory}/{layout.FLUSHED_END}")
    entry = flushed.load()
    assert entry is not None, "the log was flushed under its old identity"
    after = plan.after
    flushed.store(
        replace(
            entry,
            voters=(plan.key,),
            voter_count=1,
            cluster_id=after.cluster_id,
            directory_id=after.directory_id,
            is_healing=False,
        )
    )
    flushed.close()
    # It contains the initial voters, this node under its old id among them; the log has a later
    # set.
    bootstrap = layout.checkpoint_name(layout.BOOTSTRAP_ID)
    remove_durably(fs, f"{directory}/{layout.LOG_DIR}/{bootstrap}")
    # Lost records cannot be fetched again from any replica.
    remove_durably(fs, f"{directory}/{layout.HEALING}")
    # An operator who recovers a quorum has decided which quorum is right.
    remove_durably(fs, f"{directory}/{layout.RIVAL}")
    # The file names the pod of the old directory id. With a new id the directory is not a copy.
    remove_durably(fs, f"{directory}/{layout.POD_DOMAIN}")
    write_meta(fs, f"{directory}/{layout.META_PROPERTIES}", after)
