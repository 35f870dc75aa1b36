"""Handling of a damaged directory by stock Kafka, and by our storage.

Each damage is done to two copies of one folder: a stock server starts on the one, our storage opens
the other. docs/storage.md has both in its table; a line for each is printed at the end of the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from quorate.records.batch import iter_batches, read_records
from quorate.records.metadata import ConfigRecord, decode_record
from quorate.storage.layout import LOG_DIR
from tests.integration.damages import OUTCOMES, copy_good, damage, documented, outcome
from tests.interop.stock_kafka import StockServer, write_properties
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

ALL: Final = 8
# It is among the settings, but from the first metadata.
NOT_COUNTED: Final = "min.insync.replicas"
LEADS: Final = "Performing controller activation"
NEVER_CAMPAIGNS: Final = "electionTimeoutMs=9223372036854775807"

# What stock does wrong; the settings left are those of eight that were acknowledged.
WRONG: Final = {
    "flip-in-middle": "runs with 6 of 8",
    "flip-before-snapshot-end": "runs with 6 of 8",
    "flip-in-first-batch": "runs with 6 of 8",
    "empty-log": "runs with 6 of 8",
    "snapshot-cut": "runs",
    "no-quorum-state": "runs, votes again",
}


def settings_left(folder: Path) -> int:
    """The number of settings that the newest snapshot and the log still hold."""
    log_dir = folder / LOG_DIR
    found = set()
    for path in (max(log_dir.glob("*.checkpoint")), *log_dir.glob("*.log")):
        data = path.read_bytes()
        for position, header in iter_batches(data):
            for record in () if header.is_control else read_records(data, position, header):
                decoded, _ = decode_record(record.value or b"")
                if isinstance(decoded, ConfigRecord):
                    found.add(decoded.name)
    return len(found - {NOT_COUNTED})


def stock_outcome(stock: StockKafka, home: Path, removed: set[str]) -> str:
    """Start a server on `home`/data, and say in the words of the table what it did."""
    folder = home / "data"
    listener = f"CONTROLLER://{HOST}:{free_ports(1)[0]}"
    properties = {
        "process.roles": "controller",
        "node.id": 1,
        "log.dirs": folder,
        "listeners": listener,
        "advertised.listeners": listener,
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": listener.removeprefix("CONTROLLER://"),
    }
    with StockServer(stock, write_properties(home / "server.properties", properties)) as server:
        if not server.hears(f"{LEADS}|{NEVER_CAMPAIGNS}"):
            return "ends"
        server.kill()
        said = "".join(server.lines)
    if NEVER_CAMPAIGNS in said:
        return "runs, leaderless"
    left = settings_left(folder)
    if left < ALL:
        return f"runs with {left} of {ALL}"
    if "truncating to offset" in said:
        return "cuts"
    if "quorum-state" in removed:
        return "runs, votes again"
    came_back = removed & {path.name for path in folder.rglob("*")}
    return "rebuilds" if came_back else "runs"


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_damaged_directory_side_by_side(
    name: str,
    stock: StockKafka,
    kafka_fixtures: Path,
    tmp_path: Path,
    side_by_side: list[tuple[str, str, str]],
) -> None:
    damaged = kafka_fixtures / "damaged"
    folders = tmp_path / "stock" / "data", tmp_path / "ours" / "data"
    for folder in folders:
        copy_good(damaged, folder)
        before = {path.name for path in folder.rglob("*")}
        damage(damaged / name, folder)
        removed = before - {path.name for path in folder.rglob("*")}
    stock_did = stock_outcome(stock, folders[0].parent, removed)
    we_did, recovered, _ = outcome(folders[1])
    ours = we_did if recovered is None else f"{we_did}, {settings_left(folders[1])} of {ALL}"
    side_by_side.append((name, stock_did, ours))
    told = documented()[name]
    assert (stock_did, we_did) == (told[0].strip("*"), told[1])
    assert stock_did == WRONG.get(name, stock_did)
    if name in WRONG:
        assert told[0].startswith("**")
        assert we_did in ("refuses", "sets aside") or name == "empty-log"
