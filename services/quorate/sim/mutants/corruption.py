"""Mutants that mishandle corrupt or stale files, process exits and late messages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.raft.election.campaign import Campaign
from quorate.raft.election.epoch_guard import EpochGuard
from quorate.raft.messages import NOTHING_KNOWN, ElectionState, VoteResponse
from quorate.raft.request_manager import RequestManager
from quorate.records.ids import Epoch
from quorate.server.driver import raft_driver
from quorate.sim.mutants.mutant import Mutant, Patch, constant
from quorate.storage.errors import DamagedLogError, StorageError
from quorate.storage.log_store import LogStore
from quorate.storage.recovery.recovery import _Recovery
from quorate.storage.recovery.startup_checks import StartupChecks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quorate.raft.api import RequestFailure
    from quorate.raft.messages import EpochStart, LogRange, PeerResponse
    from quorate.raft.request_manager import InFlightRequest
    from quorate.storage.flushed_end import FlushedEnd


_read_election = _Recovery._read_election
_read_range = LogStore.read_range
_screened = EpochGuard.filter_response
_handle_response = Campaign.handle_vote_response


def _guess_election(
    self: _Recovery, flushed: FlushedEnd | None, epochs: Sequence[EpochStart] | None
) -> ElectionState | None:
    """Derive the election state from the log if the file cannot be read."""
    try:
        return _read_election(self, flushed, epochs)
    except StorageError:
        known = [Epoch(0), *(start.epoch for start in epochs or ())]
        if flushed is not None:
            known.append(flushed.end.epoch)
        return ElectionState(max(known))


def _read_anyhow(self: LogStore, span: LogRange) -> bytes:
    try:
        return _read_range(self, span)
    except OSError as error:
        raise DamagedLogError(str(error)) from error


def _believe_late(
    self: EpochGuard, in_flight_request: InFlightRequest, response: PeerResponse | RequestFailure
) -> PeerResponse | RequestFailure:
    if isinstance(response, VoteResponse) and response.leader.epoch < self.replica.epoch:
        return replace(response, leader=NOTHING_KNOWN)
    return _screened(self, in_flight_request, response)


def _count_late(
    self: Campaign, in_flight_request: InFlightRequest, response: VoteResponse | RequestFailure
) -> None:
    _handle_response(self, replace(in_flight_request, epoch=self.replica.epoch), response)


BUGS: Final = (
    Mutant(
        "vote-is-guessed",
        "a quorum-state that has rotted is replaced by what the log tells "
        "(rule quorum_state_required)",
        (1795707000014,),
        (Patch(_Recovery, "_read_election", _guess_election),),
    ),
    Mutant(
        "older-vote-is-believed",
        "a quorum-state of an earlier epoch than that of the log is taken as it is "
        "(rule quorum_state_required)",
        (20,),
        (Patch(StartupChecks, "check_quorum_state_current", constant(answer=None)),),
    ),
    Mutant(
        "unreadable-log-counts-as-damaged",
        "a log that cannot be read just now is taken for a damaged one (rule disk_error_classes)",
        (35,),
        (Patch(LogStore, "read_range", _read_anyhow),),
    ),
    Mutant(
        "shortage-is-a-failed-disk",
        "a process without descriptors says that its disk has failed (rule disk_error_classes)",
        (1795590029,),
        (Patch(raft_driver, "is_resource_shortage", constant(answer=False)),),
    ),
    Mutant(
        "late-grant-counts",
        "a vote that was given in an earlier round counts in this one",
        (1795707000045,),
        (
            Patch(RequestManager, "abandon", constant(answer=None)),
            Patch(EpochGuard, "filter_response", _believe_late),
            Patch(Campaign, "handle_vote_response", _count_late),
        ),
    ),
)
