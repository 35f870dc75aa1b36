"""Interface of the state machine that a controller runs on its log, and its factory.

The state machine is the cluster's metadata. A program that measures consensus alone starts a
controller with a state machine of its own.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from quorate.controller.controller import Controller
from quorate.records.codec.schema import SchemaError
from quorate.records.ids import Epoch
from quorate.records.metadata import decode_record
from quorate.records.value_types import value_type
from quorate.rpc.controller.servicer import ControllerServicer, WriteStreamLimits
from quorate.server.component_config import controller_settings, pause_ms
from quorate.server.driver.interfaces import StateMachineCallbacks
from quorate.server.metadata.application import MetadataApplication
from quorate.server.snapshots.snapshotter import Snapshotter
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.snapshots.snapshot_store import read_content

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.raft.messages import SnapshotInfo
    from quorate.records.ids import OffsetAndEpoch
    from quorate.records.metadata import MetadataRecord
    from quorate.rpc.service import Service
    from quorate.server.config import ControllerConfig
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.storage.meta_properties import MetaProperties
    from quorate.telemetry.metrics import Value

log = logging.getLogger(__name__)


class StateMachine(StateMachineCallbacks, Protocol):
    """The driver's interface to the state machine, and what a node needs of it besides."""

    @property
    def is_loaded(self) -> bool:
        """True if it represents this replica's log, not a partially read snapshot."""
        ...

    def begin(self, snapshot_id: OffsetAndEpoch | None) -> None:
        """Start from the newest snapshot or the log's beginning; the core has started."""
        ...

    def tick(self) -> None:
        """Called once a second."""
        ...

    def set_space(self, *, is_enough: bool) -> None:
        """Note whether the disk has free space for a leader's appends."""
        ...

    def metrics(self) -> Mapping[str, Value]:
        """Values for a scrape."""
        ...

    async def save(self) -> SnapshotInfo | None:
        """Write a snapshot of all that is committed, after the core has ended.

        Returns None if it has no complete state to write. Raises OSError, ValueError.
        """
        ...

    async def close(self) -> None:
        """End background work, and whatever clients wait for."""
        ...


@value_type
class HostedStateMachine:
    """A state machine, and the services that a listener of a given name offers for it."""

    machine: StateMachine
    services: Callable[[str], tuple[Service, ...]]


class StateMachineFactory(Protocol):
    """Factory of the state machine that a controller runs on a driver's log.

    `bootstrap` contains the records that `format` left for the first active controller.
    """

    def __call__(
        self,
        driver: RaftDriver,
        config: ControllerConfig,
        meta: MetaProperties,
        bootstrap: tuple[MetadataRecord, ...],
    ) -> HostedStateMachine: ...


def make_metadata_state_machine(
    driver: RaftDriver,
    config: ControllerConfig,
    meta: MetaProperties,
    bootstrap: tuple[MetadataRecord, ...],
) -> HostedStateMachine:
    """Create the metadata state machine of a cluster."""
    metadata = MetadataApplication(
        driver,
        Controller(controller_settings(config, meta), bootstrap, gathers=True),
        Snapshotter(driver, config.log),
        linger_ms=config.quorum.append_linger_ms,
        pause_ms=pause_ms(config),
    )
    streams = WriteStreamLimits()

    def services(listener: str) -> tuple[Service, ...]:
        return (ControllerServicer(metadata, listener=listener, streams=streams),)

    return HostedStateMachine(metadata, services)


def read_bootstrap(directory: str, *, is_needed: bool = True) -> tuple[MetadataRecord, ...]:
    """Return the records that `format` left for the first active controller.

    Raises StorageError if they cannot be read and the log does not contain them yet.
    """
    fs = OsFileSystem()
    path = f"{directory}/{layout.BOOTSTRAP_CHECKPOINT}"
    if not fs.exists(path):
        return ()
    try:
        content = read_content(fs, path, Epoch(0))
        return tuple(decode_record(value)[0] for value in content.records)
    except (StorageError, SchemaError) as error:
        if is_needed:
            raise StorageError(
                f"{error}. It holds the first metadata, which the log does not have yet: copy the "
                f"file from another controller of this cluster, or format {directory} anew"
            ) from error
        log.warning("%s: not needed any more, the log has what was in it", error)
        return ()
