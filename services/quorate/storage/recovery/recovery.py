"""Recovers a directory at startup: read, decide, repair or refuse.

Nothing is changed before everything has been read and decided, so that a refusal leaves the
directory as it was. docs/storage.md lists each kind of damage and its handling; the rules are 8, 12
to 16 and 18 of docs/protocol.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.api import RecoveredState
from quorate.raft.messages import (
    ElectionState,
    EpochStart,
    KRaftVersionAt,
    SnapshotInfo,
    VotersAt,
)
from quorate.records.control import KRaftVersion, KRaftVoters
from quorate.records.ids import (
    Epoch,
    Offset,
    OffsetAndEpoch,
)
from quorate.records.value_types import value_type
from quorate.storage import layout
from quorate.storage.directory_ids import missing_directory_id
from quorate.storage.disaster_recovery.recovery_plan import check_no_unfinished_recovery
from quorate.storage.errors import DamagedSnapshotError, StorageError
from quorate.storage.flushed_end import FlushedEnd, FlushedEndFile
from quorate.storage.healing import HealingState, read_healing
from quorate.storage.log.leader_epoch_checkpoint import check_history, read_epochs
from quorate.storage.log.segment import Segment
from quorate.storage.meta_properties import (
    MetaProperties,
    check_partition_metadata,
    read_meta,
)
from quorate.storage.quorum_state import read_quorum_state, read_without_vote
from quorate.storage.recovery.directory_contents import DirectoryContents
from quorate.storage.recovery.log_decision import LogDecision, decide_log
from quorate.storage.recovery.log_scan import KnownEpochs, scan_log
from quorate.storage.recovery.repair import Repair
from quorate.storage.recovery.startup_checks import StartupChecks
from quorate.storage.rival_file import rival_of
from quorate.storage.snapshots.snapshot_store import SnapshotStore, SnapshotSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.records.ids import ReplicaKey
    from quorate.storage.file_system import FileSystem
    from quorate.storage.log.metadata_log import MetadataLog
    from quorate.storage.storage_config import StorageConfig


@value_type
class Recovered:
    """A directory in use. `findings` describes in plain text everything that was unusual."""

    log: MetadataLog
    snapshots: SnapshotStore
    state: RecoveredState
    meta: MetaProperties
    healing_state: HealingState
    findings: tuple[str, ...]
    is_damaged: bool


@value_type
class Examined:
    """The examination of a directory without any change.

    `flushed` and `election` are the contents of the files, None if they do not exist. `voters` were
    in effect at its furthest end.
    """

    meta: MetaProperties
    election: ElectionState | None
    flushed: FlushedEnd | None
    log_decision: LogDecision
    state: RecoveredState
    voters: tuple[ReplicaKey, ...]
    findings: tuple[str, ...]


def recover(
    fs: FileSystem, metadata_log_dir: str, config: StorageConfig, *, is_rescue: bool = False
) -> Recovered:
    """Open a directory. Everything in the result is durable (rule `recovery_flush`).

    A quorum recovery (`is_rescue`) opens what a controller must not: a directory with a recovery in
    progress, and the damaged log of a single voter, whose lost records it gives up. Raises
    StorageError if the directory cannot be used; it is then unchanged.
    """
    return _Recovery(fs, metadata_log_dir, config, is_rescue=is_rescue).run()


def examine(
    fs: FileSystem, metadata_log_dir: str, config: StorageConfig, *, is_rescue: bool = True
) -> Examined:
    """Read and decide as `recover` does, but change nothing. Raises StorageError."""
    return _Recovery(fs, metadata_log_dir, config, is_rescue=is_rescue).examine()


class _Recovery:
    def __init__(
        self, fs: FileSystem, directory: str, config: StorageConfig, *, is_rescue: bool
    ) -> None:
        self.fs = fs
        self.directory = directory
        self.is_rescue = is_rescue
        self.log_dir = f"{directory}/{layout.LOG_DIR}"
        self.config = config
        self.snapshots = SnapshotStore(fs, self.log_dir)
        self.startup_checks = StartupChecks(directory, self.snapshots)
        self.findings: list[str] = []
        self.lacks_id = False

    def run(self) -> Recovered:
        if not self.is_rescue:
            check_no_unfinished_recovery(self.fs, self.directory)
        meta = self._identity()
        self.fs.make_dirs(self.log_dir)
        found = self._find(meta)
        verdict, state, voters = self._weigh(found)
        repair = Repair(self.fs, self.directory, meta, found.flushed_file)
        if self.lacks_id:
            self.findings.append(repair.add_directory_id())
        healing = repair.save_healing_state(
            found.healing_state, verdict, voters, abstains=state.abstains
        )
        if found.election is None:
            repair.begin(state, self.config.static_voters)
        elif state.election not in (None, found.election):
            repair.save_election(state, self.config.static_voters)
        self.findings += repair.remove_leftovers()
        for snapshot_id, _ in found.damaged_snapshots:
            repair.quarantine_snapshot(self.snapshots, snapshot_id)
        kept = {info.snapshot_id for info in state.snapshots} | {
            s for s, _ in found.damaged_snapshots
        }
        for info in found.stored:
            if info.snapshot_id not in kept:
                self.snapshots.delete(info.snapshot_id)
        log = repair.open_log(found.log, verdict, state, self.config)
        repair.clear_healing_if_done(healing, state)
        return Recovered(
            log, self.snapshots, state, meta, healing, tuple(self.findings), verdict.is_damage
        )

    def examine(self) -> Examined:
        meta = self._identity()
        if not self.fs.exists(self.log_dir):
            raise StorageError(f"{self.log_dir} is missing: this directory has never been in use")
        found = self._find(meta)
        verdict, state, voters = self._weigh(found)
        for segment in found.log.segments:
            segment.file.close()
        found.flushed_file.close()
        if not self.is_rescue:
            # A normal start checks it last, in `tidy`.
            check_partition_metadata(self.fs, f"{self.log_dir}/{layout.PARTITION_METADATA}")
        findings = tuple(self.findings)
        return Examined(meta, found.election, found.flushed, verdict, state, voters, findings)

    def _weigh(
        self, directory_contents: DirectoryContents
    ) -> tuple[LogDecision, RecoveredState, tuple[ReplicaKey, ...]]:
        """Decide what is kept, derive the state, and find the voters at the furthest known end."""
        verdict = decide_log(directory_contents.evidence())
        state = self._state(directory_contents, verdict)
        if verdict.keeps_log:
            flushed_offset = (
                None
                if directory_contents.flushed is None
                else directory_contents.flushed.end.offset
            )
            check_history(
                f"{self.log_dir}/{layout.EPOCH_CHECKPOINT}",
                directory_contents.epochs,
                directory_contents.log.epochs,
                first=directory_contents.log.first,
                end=directory_contents.log.end.offset,
                flushed=flushed_offset,
            )
        self._report(directory_contents, verdict)
        voters = self._voters_in_force(directory_contents, state)
        if (
            verdict.is_damage
            and directory_contents.healing_state.remembered_end is None
            and not self.is_rescue
        ):
            self.startup_checks.check_can_heal(voters, directory_contents, verdict)
        return verdict, state, voters

    # --- reading ----------------------------------------------------------------------------------

    def _identity(self) -> MetaProperties:
        path = f"{self.directory}/{layout.META_PROPERTIES}"
        new = missing_directory_id(self.fs, self.directory, self.snapshots, self.config)
        self.lacks_id = new is not None
        meta = read_meta(self.fs, path, new_directory_id=new)
        if meta is None:
            raise StorageError(
                f"{path} is missing: format the directory first (`quorate storage format`); or, if "
                "it has been in use, restore the file from a backup"
            )
        self.startup_checks.check_expected_identity(path, meta, self.config)
        return meta

    def _find(self, meta: MetaProperties) -> DirectoryContents:
        names = self.fs.list_dir(self.log_dir)
        flushed_file = FlushedEndFile(self.fs, f"{self.directory}/{layout.FLUSHED_END}")
        flushed = flushed_file.load()
        bootstrap, bootstrap_damage = self._bootstrap(names)
        self.startup_checks.check_owner(meta, flushed, bootstrap)
        epochs = read_epochs(self.fs, f"{self.log_dir}/{layout.EPOCH_CHECKPOINT}")
        election = self._read_election(flushed, epochs)
        segments = self._segments(names)
        stored = self.snapshots.stored()
        if election is None:
            self.startup_checks.check_quorum_state_present(segments, stored, flushed)
        elif flushed is not None:
            self.startup_checks.check_quorum_state_current(
                election, flushed.end, "was flushed up to"
            )
        snapshot, summary, damaged = self._newest_snapshot(stored)
        base = [
            s.snapshot_id.epoch
            for s in stored
            if segments and s.snapshot_id.offset == segments[0].base_offset
        ]
        base_epoch = (
            Epoch(0) if not segments or segments[0].base_offset == 0 else max(base, default=None)
        )
        quorum_epoch = election.epoch if election else Epoch(0)
        witnesses = KnownEpochs(base_epoch, quorum_epoch, flushed, epochs or ())
        log = scan_log(segments, witnesses)
        healing = read_healing(self.fs, f"{self.directory}/{layout.HEALING}")
        self.startup_checks.check_healing_file(flushed, healing)
        return DirectoryContents(
            meta,
            election,
            flushed,
            flushed_file,
            healing,
            epochs,
            stored,
            snapshot,
            summary,
            damaged,
            bootstrap,
            bootstrap_damage,
            log,
            witnesses.epoch_max,
        )

    def _read_election(
        self, flushed: FlushedEnd | None, epochs: Sequence[EpochStart] | None
    ) -> ElectionState | None:
        path = f"{self.log_dir}/{layout.QUORUM_STATE}"
        if not self.is_rescue:
            return read_quorum_state(self.fs, path)
        known = [Epoch(0), *(start.epoch for start in epochs or ())]
        if flushed is not None:
            known.append(flushed.end.epoch)
        election, finding = read_without_vote(self.fs, path, max(known))
        if finding:
            self.findings.append(finding)
        return election

    def _segments(self, names: list[str]) -> list[Segment]:
        segments = []
        for name in names:
            base_offset = layout.parse_segment(name)
            if base_offset is not None:
                path = f"{self.log_dir}/{name}"
                file = self.fs.open(path)
                segments.append(Segment(path, file, base_offset, file.size()))
        return segments

    def _bootstrap(self, names: list[str]) -> tuple[SnapshotSummary | None, str | None]:
        """Read the checkpoint 0-0 that `format` wrote: the initial voters."""
        if layout.checkpoint_name(layout.BOOTSTRAP_ID) not in names:
            return None, None
        try:
            return self.snapshots.check(layout.BOOTSTRAP_ID), None
        except DamagedSnapshotError as error:
            return None, str(error)

    def _newest_snapshot(
        self, stored: list[SnapshotInfo]
    ) -> tuple[SnapshotInfo | None, SnapshotSummary | None, list[tuple[OffsetAndEpoch, str]]]:
        """Return the newest valid snapshot, and the damaged ones above it."""
        damaged: list[tuple[OffsetAndEpoch, str]] = []
        for info in reversed(stored):
            try:
                return info, self.snapshots.check(info.snapshot_id), damaged
            except DamagedSnapshotError as error:
                damaged.append((info.snapshot_id, str(error)))
        return None, None, damaged

    # --- deciding ---------------------------------------------------------------------------------

    def _state(
        self, directory_contents: DirectoryContents, log_decision: LogDecision
    ) -> RecoveredState:
        log, end = directory_contents.log, log_decision.end
        voters, versions = self._sets(directory_contents, log_decision)
        if log_decision.keeps_log:
            first, epochs = log.first, tuple(log.epochs)
        else:
            first = end.offset
            epochs = (EpochStart(end.epoch, Offset(end.offset - 1)),) if end.offset else ()
        checked = (
            None if directory_contents.snapshot is None else directory_contents.snapshot.snapshot_id
        )
        snapshots = tuple(
            info
            for info in directory_contents.stored
            if checked is not None
            and info.snapshot_id <= checked
            and info.snapshot_id.offset >= first
        )
        starts = [info.snapshot_id.offset for info in snapshots] if first else [first]
        is_new = directory_contents.election is None
        kraft_version = versions[-1].kraft_version if versions else 0
        marked = self.fs.exists(f"{self.directory}/{layout.FIRST_BOOTSTRAP}")
        abstains = directory_contents.healing_state.abstains
        if is_new and kraft_version == 0 and self.config.static_voters.voters and not marked:
            abstains = True
        rival = None
        if not self.is_rescue:
            rival, finding = rival_of(self.fs, self.directory, directory_contents.meta, voters)
            self.findings += finding
        return RecoveredState(
            log_start=min(starts, default=first),
            end=end,
            epochs=epochs,
            snapshots=snapshots,
            voters=voters,
            kraft_versions=versions,
            election=self._election(directory_contents, end),
            remembered_end=log_decision.remembered_end,
            abstains=abstains,
            rival=rival,
        )

    def _election(
        self, directory_contents: DirectoryContents, end: OffsetAndEpoch
    ) -> ElectionState | None:
        """Return quorum-state's content, or a newer epoch of the log of an Apache Kafka directory.

        Such a replica can have voted in the log's epoch only for its leader: no other nominee of
        that epoch has a log with records of it, and only such a log gets this vote.
        """
        election = directory_contents.election
        if election is None or end.epoch <= election.epoch:
            return election
        if directory_contents.flushed is not None:
            self.startup_checks.check_quorum_state_current(election, end, "ends at")
        if not self.is_rescue:
            self.startup_checks.check_epoch_range(end)
        self.findings.append(
            f"{self.log_dir}/{layout.QUORUM_STATE}: epoch {election.epoch}, and the log ends at "
            f"{end}: the log wins"
        )
        return ElectionState(end.epoch)

    def _sets(
        self, directory_contents: DirectoryContents, log_decision: LogDecision
    ) -> tuple[tuple[VotersAt, ...], tuple[KRaftVersionAt, ...]]:
        """Collect voter sets and kraft.versions: bootstrap or newest snapshot, then the log."""
        voters: list[VotersAt] = []
        versions: list[KRaftVersionAt] = []
        base = directory_contents.bootstrap
        start = Offset(0)
        if directory_contents.snapshot is not None and directory_contents.summary is not None:
            base, start = directory_contents.summary, directory_contents.snapshot.snapshot_id.offset
        if base is not None and base.voters is not None:
            voters.append(VotersAt(Offset(start - 1), base.voters))
        elif self.config.static_voters.voters:
            voters.append(VotersAt(Offset(-1), self.config.static_voters))
        if base is not None:
            versions.append(KRaftVersionAt(Offset(start - 1), base.kraft_version))
        for offset, record in directory_contents.log.controls if log_decision.keeps_log else ():
            if offset < start:
                continue
            if isinstance(record, KRaftVoters):
                voters.append(VotersAt(offset, record.voters))
            elif isinstance(record, KRaftVersion):
                versions.append(KRaftVersionAt(offset, record.kraft_version))
        if directory_contents.bootstrap_damage is not None and not voters:
            raise StorageError(
                f"{directory_contents.bootstrap_damage}. It names the first voters and nothing "
                "else does: copy "
                "the file from another of the first voters, or format the directory anew"
            )
        return tuple(voters), tuple(versions)

    def _voters_in_force(
        self, directory_contents: DirectoryContents, state: RecoveredState
    ) -> tuple[ReplicaKey, ...]:
        """Return the voter set at the furthest end that is known."""
        if directory_contents.healing_state.remembered_end is not None:
            return directory_contents.healing_state.voters
        if directory_contents.flushed is not None and directory_contents.flushed.voter_count:
            return directory_contents.flushed.voters
        return tuple(voter.key for voter in state.voters[-1].voters) if state.voters else ()

    def _report(self, directory_contents: DirectoryContents, log_decision: LogDecision) -> None:
        if directory_contents.bootstrap_damage is not None:
            self.findings.append(f"{directory_contents.bootstrap_damage}: not needed any more")
        for _, reason in directory_contents.damaged_snapshots:
            self.findings.append(f"{reason}: set aside")
        what = (
            "damage"
            if log_decision.is_damage
            else "tail"
            if log_decision.keeps_log
            else "superseded"
        )
        self.findings += [f"{what}: {why}" for why in log_decision.why]
        if log_decision.remembered_end is not None:
            self.findings.append(
                f"this log ends at {log_decision.end} and once ended at "
                f"{log_decision.remembered_end}: it "
                "heals by fetching again, and does not campaign until then"
            )
        if directory_contents.epochs is None and directory_contents.log.epochs:
            self.findings.append(
                f"{self.log_dir}/{layout.EPOCH_CHECKPOINT} is missing: built anew from the log"
            )
