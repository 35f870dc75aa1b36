"""A log directory of stock Kafka in our hands, and back: nothing in it is lost on the way.

Stock's shell shows the metadata before, from our snapshot and from our log, and after stock itself
has continued. A difference may only be what was changed on purpose.
"""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pytest

from quorate.cli.quotas import entity_line
from quorate.controller.client_quotas.messages import (
    AlterClientQuotas,
    DescribeClientQuotas,
    EntityPart,
    QuotaAlteration,
    QuotaOp,
)
from quorate.controller.configs.messages import (
    AlterOperation,
    ConfigAlteration,
    ConfigChange,
    ConfigResource,
    IncrementalAlterConfigs,
    ResourceType,
)
from quorate.records.errors import ErrorCode
from quorate.storage import layout
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.errors import StorageError
from tests.integration.disks import snapshots
from tests.integration.quorum import Quorum
from tests.interop.comparison import differences
from tests.interop.metadata_shell import show
from tests.interop.stock_directory import (
    CLUSTER_ID,
    CONFIGS,
    StockDirectory,
    make_directory,
    whole_log,
)
from tests.interop.stock_kafka import StockServer, write_properties
from tests.ports import HOST, free_ports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from quorate.controller.client_quotas.messages import DescribedEntity
    from tests.interop.metadata_shell import Image
    from tests.interop.stock_kafka import StockKafka

EVERY_RECORD_IS_A_SNAPSHOT: Final = {"metadata.log.max.record.bytes.between.snapshots": "1"}
ORDERS: Final = ConfigResource(ResourceType.TOPIC, "orders")
ALL_BROKERS: Final = ConfigResource(ResourceType.BROKER, "")
SEGMENT_MS: Final = ConfigChange("segment.ms", AlterOperation.SET, "777")
SEGMENT_BYTES: Final = ConfigChange("segment.bytes", AlterOperation.SET, "20000000")
THREADS: Final = ConfigChange("num.io.threads", AlterOperation.SET, "5")
# What a stock server changes by itself when it starts: its registrations, and who leads.
OF_THE_SERVER: Final = ("/image/cluster/", "/image/topics/", "/image/producerIds/")


@dataclass(frozen=True)
class TakenOver:
    """The image of stock's directory, and of the same after it was in our use."""

    directory: StockDirectory
    before: Image
    ours: Path
    snapshot: Image
    log: Image


def config_path(key: str) -> str:
    return f"/image/configs/TOPIC:orders/{key}"


def in_our_hands(log_dir: Path, root: Path, static: str = "") -> Quorum:
    """Our controller, not started yet, on a copy of `log_dir`.

    `static` is what the properties of a quorum of kraft.version 0 need besides.
    """
    quorum = Quorum(root, EVERY_RECORD_IS_A_SNAPSHOT, controllers=1)
    node = quorum.nodes[1]
    StockDirectory.copy(log_dir, node.metadata_dir)
    with node.properties_path.open("a", encoding="utf-8") as properties:
        properties.write(static)
    return quorum


async def go_on(
    log_dir: Path, root: Path, resource: ConfigResource, change: ConfigChange, static: str = ""
) -> Path:
    """Our controller leads on a copy of `log_dir`, changes a config, snapshots, and stops."""
    quorum = in_our_hands(log_dir, root, static)
    node = quorum.nodes[1]
    found = set(snapshots(node))
    async with quorum:
        alteration = ConfigAlteration(resource, (change,))
        await quorum.client.write(IncrementalAlterConfigs((alteration,)))
        end = (await quorum.leader()).high_watermark

        async def has_snapshot() -> bool:
            ends = [int(name[:20]) for name in set(snapshots(node)) - found]
            return max(ends, default=0) == end

        await quorum.eventually(f"a snapshot at {end}", has_snapshot)
        await quorum.stop(1)
    return node.metadata_dir


def newest_snapshot(log_dir: Path) -> Path:
    return max((log_dir / layout.LOG_DIR).glob(f"*{layout.CHECKPOINT_SUFFIX}"))


@pytest.fixture(scope="module")
def taken_over(stock: StockKafka, tmp_path_factory: pytest.TempPathFactory) -> TakenOver:
    folder = tmp_path_factory.mktemp("taken")
    directory = make_directory(stock, folder / "stock")
    ours = asyncio.run(go_on(directory.log_dir, folder / "ours", ORDERS, SEGMENT_MS))
    return TakenOver(
        directory,
        before=show(stock, whole_log(directory.log_dir, folder / "before")).image,
        ours=ours,
        snapshot=show(stock, newest_snapshot(ours)).image,
        log=show(stock, whole_log(ours, folder / "after")).image,
    )


def test_the_directory_holds_every_subject(taken_over: TakenOver) -> None:
    """Otherwise the comparisons below say little."""
    leaves = [path.split("/")[2] for path in taken_over.before if path.count("/") > 2]
    assert set(leaves) == {
        "acls",
        "clientQuotas",
        "cluster",
        "configs",
        "delegationToken",
        "features",
        "producerIds",
        "scram",
        "topics",
    }
    assert any("GROUP:" in path for path in taken_over.before)


def test_our_snapshot_holds_the_same_image_and_our_change(taken_over: TakenOver) -> None:
    assert taken_over.snapshot == taken_over.before | {config_path("segment.ms"): "777"}


def test_our_log_holds_the_same_image_and_our_change(taken_over: TakenOver) -> None:
    assert taken_over.log == taken_over.before | {config_path("segment.ms"): "777"}


def test_both_dump_the_same_of_a_log_that_both_wrote(
    stock: StockKafka, taken_over: TakenOver
) -> None:
    files = sorted((taken_over.ours / layout.LOG_DIR).glob("*[0-9].log"))
    files += sorted((taken_over.ours / layout.LOG_DIR).glob("*.checkpoint"))
    assert len(files) > 2
    assert differences(stock, *files) == []


def lasting(image: Image) -> Image:
    """The image without what belongs to the processes that come and go."""
    return {path: text for path, text in image.items() if not path.startswith(OF_THE_SERVER)}


def complaints(lines: Sequence[str]) -> set[str]:
    """Warnings and errors of a stock server's log, without numbers.

    A busy machine may start a server so slowly that a request of its own comes before its
    controller is active. The controller refuses it as an error of NotControllerException, and the
    server asks again. This says nothing about the directory.
    """
    return {
        re.sub(r"\d+", "N", line)
        for line, following in pairwise([*lines, ""])
        if line.startswith(("WARN", "ERROR", "FATAL")) and "NotControllerException" not in following
    }


def start_and_stop(stock: StockKafka, directory: StockDirectory) -> set[str]:
    """Let the stock server run once; what it complained of."""
    with StockServer(stock, directory.properties) as server:
        assert server.has_started()
        server.stop()
        return complaints(server.lines)


def test_stock_goes_on_after_us_and_we_after_stock(
    stock: StockKafka, taken_over: TakenOver, tmp_path: Path
) -> None:
    directory = taken_over.directory
    ordinary = start_and_stop(stock, directory)
    StockDirectory.copy(taken_over.ours, directory.log_dir)
    assert start_and_stop(stock, directory) - ordinary == set()
    again = show(stock, whole_log(directory.log_dir, tmp_path / "again")).image
    assert lasting(again) == lasting(taken_over.log)
    assert set(again) == set(taken_over.log)
    back = asyncio.run(go_on(directory.log_dir, tmp_path / "back", ORDERS, SEGMENT_BYTES))
    wanted = again | {config_path("segment.bytes"): "20000000"}
    assert show(stock, newest_snapshot(back)).image == wanted


async def limit_clients(
    log_dir: Path, root: Path, changes: Mapping[tuple[EntityPart, ...], QuotaOp]
) -> tuple[tuple[DescribedEntity, ...], tuple[DescribedEntity, ...], Path]:
    """Our controller's descriptions before and after it changes quotas, and its directory."""
    quorum = in_our_hands(log_dir, root)
    async with quorum:
        before = await quorum.client.read(DescribeClientQuotas())
        entries = tuple(QuotaAlteration(entity, (op,)) for entity, op in changes.items())
        reply = await quorum.client.write(AlterClientQuotas(entries))
        assert {entry.error for entry in reply.entries} == {ErrorCode.NONE}
        after = await quorum.client.read(DescribeClientQuotas())
        await quorum.stop(1)
    return before.entries, after.entries, quorum.nodes[1].metadata_dir


def test_quotas_are_what_kafka_configs_said_and_what_it_says_after_us(
    stock: StockKafka, taken_over: TakenOver, tmp_path: Path
) -> None:
    """Of defaults, too, of which stock's shell makes empty paths."""
    alice, everybody = EntityPart("user", "alice"), EntityPart("user")
    app, every_client = EntityPart("client-id", "app"), EntityPart("client-id")
    rate, gone = QuotaOp("producer_byte_rate", 1024.0), QuotaOp("consumer_byte_rate", remove=True)
    changes: dict[tuple[EntityPart, ...], QuotaOp] = {
        (alice,): rate,
        (everybody,): QuotaOp("request_percentage", 12.5),
        (app,): QuotaOp("controller_mutation_rate", 0.5),
        (every_client,): rate,
        (every_client, alice): rate,
        (app, everybody): rate,
        (every_client, everybody): rate,
        (app, EntityPart("user", "al")): gone,
        (EntityPart("ip"),): QuotaOp("connection_creation_rate", 5.0),
    }
    root = tmp_path / "ours"
    before, after, ours = asyncio.run(limit_clients(taken_over.ours, root, changes))
    assert {entity_line(described) for described in before} == {
        "Quota configs for user-principal 'al', client-id 'app' are consumer_byte_rate=2048.0",
        f"Quota configs for ip '{HOST}' are connection_creation_rate=10.0",
    }
    assert len(after) == len(changes)
    directory = taken_over.directory
    StockDirectory.copy(ours, directory.log_dir)
    with StockServer(stock, directory.properties) as server:
        assert server.has_started()
        lines: list[str] = []
        for types in ("users", "clients", "ips", "users clients"):
            entities = [flag for type_ in types.split() for flag in ("--entity-type", type_)]
            said = stock.run(
                CONFIGS, "--bootstrap-server", directory.broker, "--describe", *entities
            )
            assert said.status == 0, said
            lines += [line for line in said.stdout.splitlines() if line.startswith("Quota")]
        server.stop()
    assert sorted(lines) == sorted(entity_line(described) for described in after)


def test_one_directory_is_never_shared(stock: StockKafka, taken_over: TakenOver) -> None:
    """Neither a stock server nor our controller opens what the other one has open."""
    directory = taken_over.directory
    with StockServer(stock, directory.properties) as server:
        assert server.has_started()
        with pytest.raises(StorageError, match="is held by another program"):
            DirectoryLock(str(directory.log_dir)).acquire()
        server.stop()
    with DirectoryLock(str(directory.log_dir)), StockServer(stock, directory.properties) as server:
        assert server.hears("Failed to acquire lock on file")


@pytest.mark.parametrize("release", ["3.3-IV3", "4.3-IV0"])
def test_a_voter_that_its_properties_name_is_taken_over_too(
    release: str, stock: StockKafka, tmp_path: Path
) -> None:
    """At kraft.version 0 nothing in the log says who votes; the oldest release knows no other."""
    controller = f"{HOST}:{free_ports(1)[0]}"
    properties = write_properties(
        tmp_path / "server.properties",
        {
            "process.roles": "controller",
            "node.id": 1,
            "log.dirs": tmp_path / "stock",
            "listeners": f"CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
        },
    )
    stock.format(properties, CLUSTER_ID, "--release-version", release)
    with StockServer(stock, properties) as server:
        assert server.hears("Performing controller activation")
        # Its first records follow; it says that it has started once they are committed.
        assert server.has_started()
        server.stop()
    before = show(stock, whole_log(tmp_path / "stock", tmp_path / "before")).image
    assert before["/image/features/metadataVersion"] == f"Optional[{release}]"
    meta = tmp_path / "stock" / layout.META_PROPERTIES
    if release == "3.3-IV3":
        # Kafka of that release gave directories no ids.
        lines = meta.read_text().splitlines()
        meta.write_text("\n".join(line for line in lines if not line.startswith("directory.id")))
    static = f"controller.quorum.voters=1@{controller}\n"
    ours = asyncio.run(go_on(tmp_path / "stock", tmp_path / "ours", ALL_BROKERS, THREADS, static))
    wanted = before | {"/image/configs/BROKER/num.io.threads": "5"}
    assert show(stock, newest_snapshot(ours)).image == wanted
    state = json.loads((ours / layout.LOG_DIR / layout.QUORUM_STATE).read_text())
    assert (state["data_version"], state["currentVoters"]) == (0, [{"voterId": 1}])
    assert (ours / layout.META_PROPERTIES).read_text().count("directory.id=") == 1
