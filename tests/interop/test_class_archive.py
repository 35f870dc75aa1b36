"""Stock Kafka's processes load their classes from the archive next to the jars."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Final

from tests.interop.stock_kafka import DEADLINE_S, STORAGE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.stock_kafka import StockKafka

# A server loads it, too, and a server has written the archive.
OF_KAFKA: Final = "org.apache.kafka.common.Uuid"


def test_a_tool_loads_classes_of_kafka_from_the_archive(stock: StockKafka, tmp_path: Path) -> None:
    assert stock.archive is not None
    assert stock.archive.parent == stock.jars
    loaded = tmp_path / "loaded.txt"
    command = stock.command(STORAGE, "random-uuid")
    # The last word on logging counts.
    command.insert(command.index("-cp"), f"-Xlog:class+load:file={loaded}")
    subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S)
    line = next(line for line in loaded.read_text().splitlines() if f" {OF_KAFKA} " in line)
    assert line.endswith("source: shared objects file (top)"), line
