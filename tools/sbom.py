"""The bill of materials of a release: all that requirements.lock pins, as CycloneDX 1.6.

A lock knows hashes and no licences, an environment the reverse. A licence is that of the installed
package of the same version, and is left out where none is installed or it states none.
"""

from __future__ import annotations

import json
import platform
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned package with the SHA-256 of each file that pip may install."""

    name: str
    version: str
    hashes: tuple[str, ...]


def read_pins(lock: str) -> Iterator[Pin]:
    """The pins of a lock; raises ValueError for one without a hash."""
    for entry in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE):
        if head := PIN.match(entry):
            hashes = tuple(sorted(HASH.findall(entry)))
            if not hashes:
                raise ValueError(f"requirements.lock: {head[1]} has no hash: generate it with them")
            yield Pin(head[1].lower(), head[2], hashes)


def find_license(pin: Pin) -> str | None:
    """The licence that the installed package of this version states."""
    try:
        if version(pin.name) != pin.version:
            return None
        fields: Any = metadata(pin.name)
    except PackageNotFoundError:
        return None
    stated = fields.get("License-Expression") or fields.get("License") or ""
    if stated and "\n" not in stated:
        return str(stated)
    names = [
        line.rpartition(" :: ")[2]
        for line in fields.get_all("Classifier") or []
        if line.startswith("License :: ")
    ]
    return " OR ".join(names) or None


def describe(pin: Pin) -> dict[str, Any]:
    """A component of CycloneDX."""
    url = f"pkg:pypi/{pin.name}@{pin.version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": url,
        "name": pin.name,
        "version": pin.version,
        "purl": url,
        "hashes": [{"alg": "SHA-256", "content": content} for content in pin.hashes],
    }
    if stated := find_license(pin):
        component["licenses"] = [{"license": {"name": stated}}]
    return component


def write_sbom(lock: str, release: str, time_s: int) -> str:
    """The document for a version of Quorate; `time_s` is the time of its commit."""
    url = f"pkg:pypi/quorate@{release}"
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{url} {time_s}')}",
        "version": 1,
        "metadata": {
            "timestamp": f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%dT%H:%M:%SZ}",
            "tools": {
                "components": [
                    {"type": "platform", "name": "python", "version": platform.python_version()},
                    {"type": "application", "name": "setuptools", "version": version("setuptools")},
                ]
            },
            "component": {
                "type": "application",
                "bom-ref": url,
                "name": "quorate",
                "version": release,
                "purl": url,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [describe(pin) for pin in read_pins(lock)],
    }
    return json.dumps(document, indent=2) + "\n"
