"""kafka-dump-log on a log that was recovered, and on one that was restored from its backup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from quorate.cli.main import main
from quorate.records.ids import DirectoryId, NodeId, ReplicaKey
from quorate.records.voters import Endpoint, Voter, VoterSet
from tests.interop.comparison import content, ours
from tests.unit.cli.directories import make_directory

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

# A port that only the system assigns has no listener.
VOTERS = VoterSet.of(
    Voter(
        ReplicaKey(NodeId(i), DirectoryId(bytes([i]) * 16)),
        (Endpoint("GRPC", "127.0.0.1", i),),
    )
    for i in (1, 2, 3)
)


def log_of(directory: Path) -> list[Path]:
    return sorted((directory / "__cluster_metadata-0").glob("*.log"))


def test_stock_reads_a_recovered_log_and_one_that_was_restored(
    stock: StockKafka, tmp_path: Path
) -> None:
    recovered = make_directory(tmp_path / "recovered", VOTERS.voters[0].key, VOTERS)
    flags = ["--unsafe-new-quorum", "--directory", str(recovered), "--execute"]
    assert main(["storage", "recover", *flags]) == 0
    properties, backup = tmp_path / "controller.properties", tmp_path / "backup.tar"

    def use(directory: Path) -> list[str]:
        properties.write_text(
            f"node.id=1\nlisteners=GRPC://127.0.0.1:1\nmetadata.log.dir={directory}\n"
            "controller.quorum.bootstrap.servers=127.0.0.1:1\n"
        )
        return ["--config", str(properties)]

    assert main(["storage", "backup", *use(recovered), "--output", str(backup)]) == 0
    restored = tmp_path / "restored"
    assert main(["storage", "restore", *use(restored), "--input", str(backup)]) == 0
    logs = [*log_of(recovered), *log_of(restored)]
    mine = ours(*logs)
    assert sum("KRaftVoters" in line for line in mine) == 2 + 3
    said = stock.dump_log(*logs)
    assert (said.status, said.stderr) == (0, "")
    # Quorate writes decommissioned voters to a tagged field, which stock Kafka does not print.
    assert [re.sub(r',"decommissioned":\[[^]]*\]', "", line) for line in mine] == content(
        said.stdout
    )
