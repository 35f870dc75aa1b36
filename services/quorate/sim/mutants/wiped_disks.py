"""Mutants of lost disks at kraft.version 0 (rule `empty_log_abstains`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from quorate.sim.mutants.mutant import SHORT_TIMEOUTS, Mutant, Patch
from quorate.storage.recovery.recovery import _Recovery

if TYPE_CHECKING:
    from quorate.raft.api import RecoveredState
    from quorate.storage.recovery.directory_contents import DirectoryContents
    from quorate.storage.recovery.log_decision import LogDecision

_state = _Recovery._state


def _abstain_while_empty(
    self: _Recovery, directory_contents: DirectoryContents, log_decision: LogDecision
) -> RecoveredState:
    state = _state(self, directory_contents, log_decision)
    return replace(state, abstains=False) if state.end.offset else state


def _never_abstain(
    self: _Recovery, directory_contents: DirectoryContents, log_decision: LogDecision
) -> RecoveredState:
    return replace(_state(self, directory_contents, log_decision), abstains=False)


BUGS: Final = (
    Mutant(
        "wiped-voter-votes",
        "an empty directory at kraft.version 0 votes, marked or not (rule empty_log_abstains)",
        (1795707000036,),
        (Patch(_Recovery, "_state", _never_abstain),),
    ),
    Mutant(
        "wiped-voter-votes-with-any-record",
        "a wiped voter that has fetched a batch votes after its next start "
        "(rule empty_log_abstains)",
        (4,),
        (Patch(_Recovery, "_state", _abstain_while_empty),),
        world={
            **SHORT_TIMEOUTS,
            "voters": 3,
            "kraft_version": 0,
            "delay_us": 10_000,
            "wipe_every_ms": 3000,
            "kill_every_ms": 2500,
            "restart_ms": 3000,
            "fetch_max_bytes": 200,
            "write_every_ms": 50,
            "records_max": 10,
        },
    ),
)
