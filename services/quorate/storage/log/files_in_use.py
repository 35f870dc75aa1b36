"""The files that a running replica relies on: compared with their names, and put back.

See rule `disk_fail_stop`. A process keeps its segments open. If another program removes or replaces
them, the process flushes into files without a name, and its next start finds nothing of it. The
content of these files can still be read by their descriptors, and the content of quorum-state is
known.

All calls except `election_saved` come from the thread that also saves quorum-state, truncates and
cleans: a rename or removal by this process cannot look like a loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.raft.messages import ElectionState
from quorate.records.ids import Epoch
from quorate.records.value_types import value_type
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import copy_durably, write_atomically
from quorate.storage.meta_properties import read_meta
from quorate.storage.quorum_state import (
    decode_quorum_state,
    encode_quorum_state,
)
from quorate.storage.recovery.quarantine import Quarantine

if TYPE_CHECKING:
    from collections.abc import Collection

    from quorate.raft.api import SaveElection
    from quorate.records.voters import VoterSet
    from quorate.storage.file_system import FileSystem
    from quorate.storage.log.metadata_log import MetadataLog
    from quorate.storage.log.segment import Segment
    from quorate.storage.meta_properties import MetaProperties


@value_type
class LostFile:
    """A file that another program removed, or replaced by a file with other content."""

    path: str
    is_replaced: bool

    def __str__(self) -> str:
        return f"{self.path} {'was replaced' if self.is_replaced else 'is gone'}"


@value_type
class PutBack:
    """The files that have their content again; `problem` is the reason why others have not.

    `is_refused` means that nothing may be written there at all.
    """

    paths: tuple[str, ...]
    problem: str = ""
    is_refused: bool = False


class FilesInUse:
    """quorum-state and the segments of one replica."""

    def __init__(
        self,
        fs: FileSystem,
        directory: str,
        log: MetadataLog,
        meta: MetaProperties,
        election: ElectionState | None,
        static_voters: VoterSet,
    ) -> None:
        """`directory` is metadata.log.dir, `election` the content of quorum-state."""
        self._fs = fs
        self._directory = directory
        self._log = log
        self._meta = meta
        self._election = election or ElectionState(Epoch(0))
        # The bytes that this process saved last.
        self._saved: bytes | None = None
        self._static_voters = static_voters

    @property
    def _quorum_state(self) -> str:
        return f"{self._log.directory}/{layout.QUORUM_STATE}"

    def election_saved(self, effect: SaveElection) -> None:
        """Note the new content of quorum-state."""
        self._saved = encode_quorum_state(effect.state, effect.kraft_version, effect.voters)

    def lost(self) -> tuple[LostFile, ...]:
        """Return the files that are gone or were replaced, oldest segment first. Raises OSError."""
        lost = []
        path = self._quorum_state
        if not self._holds_election():
            lost.append(LostFile(path, self._fs.exists(path)))
        lost += [
            LostFile(segment.path, self._fs.exists(segment.path))
            for segment in self._log.segments.files
            if not segment.is_in_place(self._fs)
        ]
        return tuple(lost)

    def _holds_election(self) -> bool:
        """True if quorum-state has the known content; each save gives the file a new inode."""
        try:
            data = self._fs.read(self._quorum_state)
            if self._saved is not None:
                return data == self._saved
            return decode_quorum_state(data) == self._election
        except (FileNotFoundError, NotADirectoryError, StorageError, ValueError):
            return False

    # --- restoration ------------------------------------------------------------------------------

    def put_back(self, lost: Collection[LostFile]) -> PutBack:
        """Rewrite the lost files, durable on return; nothing may be appended any more.

        The vote comes first: recovery refuses a log without one. A file in the place of a lost one
        is quarantined, not overwritten. If metadata.log.dir itself is gone, nothing is written:
        another disk may be mounted there.
        """
        done: list[str] = []
        try:
            refusal = self._why_not_written()
            if refusal is not None:
                return PutBack((), refusal, is_refused=True)
            self._put_all_back({file.path: file for file in lost}, done)
        except (OSError, StorageError) as error:
            return PutBack(tuple(done), str(error))
        return PutBack(tuple(done))

    def _why_not_written(self) -> str | None:
        failure = self._log.failure
        if failure is not None and not isinstance(failure, FileNotFoundError):
            return f"the disk failed before ({failure})"
        path = f"{self._directory}/{layout.META_PROPERTIES}"
        meta = read_meta(self._fs, path)
        if meta == self._meta:
            return None
        what = "is gone, too" if meta is None else "is that of another replica"
        return f"{path} {what}: metadata.log.dir was removed or moved, or its disk unmounted"

    def _put_all_back(self, lost: dict[str, LostFile], done: list[str]) -> None:
        fs, log = self._fs, self._log
        fs.make_dirs(log.directory)
        aside = Quarantine(fs, log.directory)
        path = self._quorum_state
        if path in lost:
            if lost[path].is_replaced:
                aside.move(path)
            write_atomically(fs, path, self._saved or self._encoded_election())
            done.append(path)
        for segment in log.segments.files:
            if segment.path in lost:
                self._put_segment_back(segment)
                if lost[segment.path].is_replaced:
                    aside.move(segment.path)
                fs.rename(segment.path + layout.TEMPORARY_SUFFIX, segment.path)
                done.append(segment.path)
            else:
                segment.file.fdatasync()
        fs.sync_dir(log.directory)
        # All written data is under its name and on the disk.
        log.state.flushed = log.end.offset

    def _encoded_election(self) -> bytes:
        log, voted = self._log, self._election.voted
        version = log.kraft_version_below(log.end.offset)
        if voted is not None and voted.directory_id is not None:
            # Only version 1 of the file contains the directory.
            version = max(version, 1)
        return encode_quorum_state(self._election, version, self._static_voters)

    def _put_segment_back(self, segment: Segment) -> None:
        if segment.file.size() < segment.size_bytes:
            raise StorageError(f"{segment.path}: the file system does not give back all of it")
        copy = segment.path + layout.TEMPORARY_SUFFIX
        copy_durably(self._fs, segment.file, copy, segment.size_bytes)
