"""meta.properties and partition.metadata, in Kafka's format.

meta.properties holds the identity of the directory; partition.metadata lies next to the log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from quorate.records.ids import ClusterId, DirectoryId, NodeId, format_uuid, parse_directory_id
from quorate.records.value_types import value_type
from quorate.settings.integers import INT32_MAX, whole_number
from quorate.storage.errors import StorageError
from quorate.storage.file_system import write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from quorate.storage.file_system import FileSystem

T = TypeVar("T")
_VERSION: Final = 1
_TOPIC_ID: Final = bytes(15) + b"\x01"
_PARTITION_METADATA: Final = f"version: 0\ntopic_id: {format_uuid(_TOPIC_ID)}".encode()
_PROPERTY: Final = re.compile(r"\s*([^\s=:#!]+)\s*[=:]\s*(.*?)\s*")
_COMMENTS: Final = ("#", "!")
_NO_DIRECTORY_ID: Final = "directory.id is missing"


@value_type
class MetaProperties:
    """The identity of a directory: its node, its cluster and its own id (KIP-853, KIP-858)."""

    node_id: NodeId
    cluster_id: ClusterId
    directory_id: DirectoryId


def encode_meta(meta: MetaProperties) -> bytes:
    """Encode meta.properties in Kafka's version 1, without the date in Kafka's comment."""
    return (
        f"#\nnode.id={meta.node_id}\ndirectory.id={format_uuid(meta.directory_id)}\n"
        f"version={_VERSION}\ncluster.id={meta.cluster_id}\n"
    ).encode()


def decode_meta(data: bytes, *, new_directory_id: DirectoryId | None = None) -> MetaProperties:
    """Decode the identity. Raises ValueError that names the property at fault.

    Kafka before 3.7 wrote no directory.id: such a file gets `new_directory_id` if it is given.
    """
    properties = _properties(data)
    if new_directory_id is not None:
        properties.setdefault("directory.id", format_uuid(new_directory_id))
    for name in ("version", "node.id", "cluster.id", "directory.id"):
        if not properties.get(name):
            raise ValueError(f"{name} is missing")
    if properties["version"] != str(_VERSION):
        raise ValueError(f"version is {properties['version']}, known is {_VERSION}")
    return MetaProperties(
        _property(properties, "node.id", _node_id),
        ClusterId(properties["cluster.id"]),
        _property(properties, "directory.id", parse_directory_id),
    )


def _properties(data: bytes) -> dict[str, str]:
    properties: dict[str, str] = {}
    for line in data.decode("utf-8-sig").splitlines():
        if not line.strip() or line.lstrip().startswith(_COMMENTS):
            continue
        match = _PROPERTY.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} is no property")
        properties[match[1]] = match[2]
    return properties


def _property(properties: Mapping[str, str], name: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(properties[name])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _node_id(text: str) -> NodeId:
    return NodeId(whole_number(text, maximum=INT32_MAX))


def read_meta(
    fs: FileSystem, path: str, *, new_directory_id: DirectoryId | None = None
) -> MetaProperties | None:
    """Read the directory's identity; None if the file does not exist.

    `new_directory_id` is as for `decode_meta`. Raises StorageError if the file is malformed.
    """
    if not fs.exists(path):
        return None
    try:
        return decode_meta(fs.read(path), new_directory_id=new_directory_id)
    except ValueError as error:
        if str(error) == _NO_DIRECTORY_ID and lacks_directory_id(fs, path):
            raise StorageError(
                f"{path}: {_NO_DIRECTORY_ID}, as in files of Kafka before 3.7: start the "
                "controller, which adds it; or, restore the file from a backup"
            ) from error
        raise StorageError(
            f"{path}: {error}. Restore the file: node.id and cluster.id are those of the cluster, "
            "directory.id is the one under which `metadata-quorum describe` lists this voter"
        ) from error


def lacks_directory_id(fs: FileSystem, path: str) -> bool:
    """True if meta.properties exists without a directory.id, as Kafka before 3.7 wrote it.

    False if another line is malformed: `read_meta` then reports it.
    """
    try:
        return fs.exists(path) and "directory.id" not in _properties(fs.read(path))
    except ValueError:
        return False


def add_directory_id(fs: FileSystem, path: str, directory_id: DirectoryId) -> None:
    """Add directory.id to meta.properties, durable on return; other lines stay (KIP-853)."""
    line = f"directory.id={format_uuid(directory_id)}\n".encode()
    write_atomically(fs, path, fs.read(path).rstrip(b"\r\n") + b"\n" + line)


def write_meta(fs: FileSystem, path: str, meta: MetaProperties) -> None:
    """Write meta.properties, durable on return."""
    write_atomically(fs, path, encode_meta(meta))


def ensure_partition_metadata(fs: FileSystem, path: str) -> bool:
    """Write partition.metadata if it is missing; True if it was.

    Raises StorageError as `check_partition_metadata` does.
    """
    if check_partition_metadata(fs, path):
        return False
    write_atomically(fs, path, _PARTITION_METADATA)
    return True


def check_partition_metadata(fs: FileSystem, path: str) -> bool:
    """True if partition.metadata exists. Its content is constant, so losing it loses nothing.

    Raises StorageError if the content differs: then this is not the directory of the metadata log.
    """
    if not fs.exists(path):
        return False
    if not is_metadata_partition(fs.read(path)):
        raise StorageError(
            f"{path}: this is not the metadata topic's. Remove the file if the directory is indeed "
            "that of the metadata log; it is then written anew"
        )
    return True


def is_metadata_partition(data: bytes) -> bool:
    """True if the bytes of a partition.metadata are those of the metadata topic's partition."""
    return data.strip() == _PARTITION_METADATA
