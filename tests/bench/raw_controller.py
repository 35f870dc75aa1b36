"""A controller whose log holds opaque records instead of metadata: what a commit costs by itself.

    python -m tests.bench.raw_controller --config FILE

It is a controller like any other but for what it hosts. Its directory holds no metadata afterwards.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quorate.server.__main__ import main
from quorate.server.state_machine import HostedStateMachine
from tests.bench.raw_servicer import RawService
from tests.bench.raw_state_machine import RawApplication

if TYPE_CHECKING:
    from quorate.records.metadata import MetadataRecord
    from quorate.server.config import ControllerConfig
    from quorate.server.driver.raft_driver import RaftDriver
    from quorate.storage.meta_properties import MetaProperties


def host_records(
    driver: RaftDriver,
    config: ControllerConfig,
    meta: MetaProperties,
    bootstrap: tuple[MetadataRecord, ...],
) -> HostedStateMachine:
    """Opaque records, whatever the log held before."""
    del meta, bootstrap
    raw = RawApplication(driver, linger_ms=config.quorum.append_linger_ms)
    return HostedStateMachine(raw, lambda _listener: (RawService(raw),))


if __name__ == "__main__":
    sys.exit(main(host_records))
