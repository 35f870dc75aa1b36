"""`quorate dump-log`: print and verify segments and snapshots, as Kafka's tool does.

Every batch and control record is printed; metadata records too on request. Damage is reported on
stderr with file and byte, and makes the exit status 1.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from quorate.process.output_encoding import json_for_stdout
from quorate.records.batch import CorruptBatchError, check_batch, read_header, read_records
from quorate.records.ids import Epoch
from quorate.records.json_format import control_to_json, record_to_json
from quorate.records.metadata import decode_record
from quorate.settings.regular_files import NotRegularFileError, open_regular
from quorate.storage import layout
from quorate.storage.errors import StorageError
from quorate.storage.file_system import OsFileSystem
from quorate.storage.log.leader_epoch_checkpoint import read_epochs
from quorate.storage.log.segment import Segment
from quorate.storage.quorum_state import read_quorum_state
from quorate.storage.recovery.log_scan import KnownEpochs, scan_log
from quorate.storage.snapshots.snapshot_store import SnapshotChecker, checked_batches

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from quorate.records.batch import BatchHeader, Record

NEWEST_EPOCH = Epoch(2**31 - 1)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to `quorate`."""
    parser = subparsers.add_parser(
        "dump-log",
        help="print and check logs and checkpoints",
        description="Print every batch and control record of logs and checkpoints, and check them.",
    )
    parser.add_argument("--files", required=True, metavar="F[,F]", help="logs and checkpoints")
    parser.add_argument(
        "--cluster-metadata-decoder",
        action="store_true",
        help="print the metadata records too",
    )
    parser.add_argument(
        "--skip-record-metadata", action="store_true", help="print of each record only what it says"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print and check every file; 1 when anything is damaged or cannot be read."""
    status = 0
    for name in arguments.files.split(","):
        try:
            with open(open_regular(name, os.O_RDONLY), "rb") as file:
                data = file.read()
        except (OSError, NotRegularFileError) as error:
            what = error.strerror if isinstance(error, OSError) else error
            print(f"quorate dump-log: --files: {name}: {what}", file=sys.stderr)
            status = 1
            continue
        unparsed: list[str] = []
        lines = (
            json_lines(name, data, unparsed)
            if arguments.output == "json"
            else text_lines(
                name,
                data,
                unparsed,
                has_payload=arguments.cluster_metadata_decoder,
                has_places=not arguments.skip_record_metadata,
            )
        )
        for line in lines:
            print(line)
        for finding in (*unparsed, *damage(name)):
            print(finding, file=sys.stderr)
            status = 1
    return status


# --- checking -------------------------------------------------------------------------------------


def damage(name: str) -> list[str]:
    """The damage of a file, one line each, with the byte where it begins."""
    path = Path(name)
    fs = OsFileSystem()
    file = fs.open(name)
    try:
        base = layout.parse_segment(path.name)
        if base is not None:
            return _log_damage(name, Segment(name, file, base, file.size()))
        snapshot_id = layout.parse_checkpoint(path.name)
        checker = SnapshotChecker(name, snapshot_id.epoch if snapshot_id else Epoch(0))
        for _ in checked_batches(file, checker):
            pass
        checker.summary()
    except StorageError as error:
        return [str(error)]
    finally:
        file.close()
    return []


def _log_damage(name: str, segment: Segment) -> list[str]:
    """Check a log: contiguous; epochs rise at a LeaderChange only, and match the epoch history."""
    fs = OsFileSystem()
    beside = str(Path(name).parent)
    epochs = read_epochs(fs, f"{beside}/{layout.EPOCH_CHECKPOINT}") or ()
    election = read_quorum_state(fs, f"{beside}/{layout.QUORUM_STATE}")
    base_epoch = Epoch(0) if segment.base_offset == 0 else None
    for entry in epochs:
        if entry.start_offset < segment.base_offset:
            base_epoch = entry.epoch
    witnesses = KnownEpochs(
        base_epoch=base_epoch,
        quorum_epoch=election.epoch if election else NEWEST_EPOCH,
        epochs=epochs,
    )
    problem = scan_log([segment], witnesses).problem
    if problem is None:
        return []
    return [f"{name}: damaged at byte {problem.position} ({problem.reason})"]


# --- printing -------------------------------------------------------------------------------------


def _batches(data: bytes) -> Iterator[tuple[int, BatchHeader, bool]]:
    """Every batch whose header can be read, and whether it passes verification."""
    position = 0
    while position < len(data):
        try:
            header = read_header(data, position)
        except CorruptBatchError:
            return
        try:
            check_batch(data, position)
            is_valid = True
        except CorruptBatchError:
            is_valid = False
        if position + header.size_bytes > len(data):
            return
        yield position, header, is_valid
        position += header.size_bytes


def text_lines(
    name: str, data: bytes, unparsed: list[str], *, has_payload: bool, has_places: bool
) -> Iterator[str]:
    """The file formatted as by kafka-dump-log. Unparsable parts are also added to `unparsed`."""
    yield f"Dumping {name}"
    yield _first_line(Path(name).name)
    end = 0
    for position, header, is_valid in _batches(data):
        end = position + header.size_bytes
        yield _batch_line(position, header, is_valid=is_valid)
        try:
            for record in read_records(data, position, header):
                yield _record_line(record, header, has_payload=has_payload, has_place=has_places)
        except ValueError as error:
            yield f"Error at {header.base_offset}, skipping. {error}"
            if is_valid:
                unparsed.append(f"{name}: batch at byte {position}: {error}")
    if end < len(data):
        yield f"Found {len(data) - end} invalid bytes at the end of {name}"


def _first_line(file_name: str) -> str:
    base = layout.parse_segment(file_name)
    if base is not None:
        return f"Log starting offset: {base}"
    snapshot_id = layout.parse_checkpoint(file_name)
    if snapshot_id is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {snapshot_id.offset}, epoch: {snapshot_id.epoch}"


def _batch_line(position: int, header: BatchHeader, *, is_valid: bool) -> str:
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} "
        f"count: {header.record_count} baseSequence: {header.base_sequence} "
        f"lastSequence: {_last_sequence(header)} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.epoch} "
        f"isTransactional: {_word(bool(header.attributes & 0x10))} "
        f"isControl: {_word(header.is_control)} deleteHorizonMs: OptionalLong.empty "
        f"position: {position} CreateTime: {header.max_timestamp_ms} size: {header.size_bytes} "
        f"magic: {header.magic} compresscodec: none crc: {header.crc} isvalid: {_word(is_valid)}"
    )


def _last_sequence(header: BatchHeader) -> int:
    if header.base_sequence < 0:
        return header.base_sequence
    return header.base_sequence + header.last_offset_delta


def _record_line(record: Record, header: BatchHeader, *, has_payload: bool, has_place: bool) -> str:
    """A record with its position in the log; without it a control record is an empty line."""
    if header.is_control and not has_place:
        return ""
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    place = (
        f"offset: {record.offset} CreateTime: {record.timestamp_ms} keySize: {key_size} "
        f"valueSize: {value_size} sequence: {header.base_sequence} headerKeys: []"
    )
    line = f"| {place}" if has_place else "|"
    if header.is_control:
        label, fields = control_to_json(record.key or b"", record.value or b"")
        return f"{line} {label}{_compact(fields)}"
    if has_payload:
        decoded, version = decode_record(record.value or b"")
        return f"{line} payload: {_compact(record_to_json(decoded, version))}"
    return line


def _record_form(record: Record, header: BatchHeader) -> dict[str, object]:
    """A record as an object; one whose bytes do not parse has an error instead."""
    try:
        if header.is_control:
            label, fields = control_to_json(record.key or b"", record.value or b"")
            return {"type": label.strip(" :"), "data": fields}
        return record_to_json(*decode_record(record.value or b""))
    except ValueError as error:
        return {"error": str(error)}


def json_lines(name: str, data: bytes, unparsed: list[str]) -> Iterator[str]:
    """One object for each batch with its records. Unparsable parts are also added to `unparsed`."""
    for position, header, is_valid in _batches(data):
        records: list[dict[str, object]] = []
        unread: dict[str, object] = {}
        try:
            for record in read_records(data, position, header) if is_valid else ():
                form = _record_form(record, header)
                records.append({"offset": record.offset, **form})
                if "error" in form:
                    unparsed.append(f"{name}: offset {record.offset}: {form['error']}")
        except CorruptBatchError as error:
            unread = {"error": str(error)}
            unparsed.append(f"{name}: batch at byte {position}: {error}")
        yield _compact(
            {
                "file": name,
                "position": position,
                "baseOffset": header.base_offset,
                "lastOffset": header.last_offset,
                "partitionLeaderEpoch": header.epoch,
                "isControl": header.is_control,
                "timestamp": header.max_timestamp_ms,
                "size": header.size_bytes,
                "isvalid": is_valid,
                "records": records,
                **unread,
            }
        )


def _compact(value: object) -> str:
    return json_for_stdout(value, (",", ":"))


def _word(value: bool) -> str:  # noqa: FBT001 - Java's words for it
    return "true" if value else "false"
