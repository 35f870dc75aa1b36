"""Prints topic definitions for `quorate topics create --file`, shaped as those of a real company.

    python deploy/examples/make_topics.py [COUNT] > topics.yaml

The same count gives the same file. Names are domain.entity.event.version with retry and dead-letter
topics, change-data-capture tables and compacted changelogs; partitions and configs follow what such
topics have: few are large, most are small, some are compacted.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice, product
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT_DEFAULT = 1200
DAY_MS = 86_400_000

DOMAINS = {
    "billing": ("invoice", "payment", "refund", "subscription"),
    "catalog": ("category", "price", "product", "stock"),
    "customer": ("account", "address", "consent", "profile"),
    "delivery": ("parcel", "pick-list", "return", "shipment"),
    "identity": ("credential", "login", "role", "session"),
    "marketing": ("campaign", "coupon", "newsletter", "segment"),
    "orders": ("basket", "checkout", "order", "order-line"),
    "search": ("click", "index", "query", "suggestion"),
    "support": ("agent", "conversation", "survey", "ticket"),
    "telemetry": ("device", "location", "page-view", "sensor-reading"),
}
EVENTS = ("created", "updated", "deleted", "failed", "completed")
LARGE = {"click", "page-view", "sensor-reading", "location", "query"}

Definition = dict[str, object]


def events() -> Iterator[tuple[str, Definition]]:
    """One topic for each event, with its retries and its dead letters."""
    for (domain, entities), event in product(DOMAINS.items(), EVENTS):
        for entity in entities:
            name = f"{domain}.{entity}.{event}.v1"
            partitions = 24 if entity in LARGE else 6
            configs: Definition = {"cleanup.policy": "delete", "retention.ms": 7 * DAY_MS}
            if entity in LARGE:
                configs |= {"compression.type": "lz4", "segment.bytes": 536_870_912}
            yield name, _topic(partitions, {**configs, "min.insync.replicas": 2})
            yield f"{name}.retry", _topic(3, {"retention.ms": DAY_MS})
            yield f"{name}.dlq", _topic(1, {"retention.ms": 30 * DAY_MS})


def tables() -> Iterator[tuple[str, Definition]]:
    """Captured tables and the changelogs of stream processors: compacted."""
    for domain, entities in DOMAINS.items():
        for entity, region in product(entities, ("eu-west", "us-east", "ap-south")):
            compacted: Definition = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.2}
            yield f"cdc.{region}.{domain}.{entity}", _topic(6, compacted)
            store = f"{domain}-{entity}-by-id-{region}-changelog"
            yield store, _topic(4, {"cleanup.policy": "compact,delete", "retention.ms": 3 * DAY_MS})
            for suffix in ("audit", "export", "metrics", "replay", "snapshot"):
                name = f"{region}.{domain}.{entity}.{suffix}"
                yield name, _topic(2, {"max.message.bytes": 2_097_176})


def _topic(partitions: int, configs: Definition) -> Definition:
    return {"partitions": partitions, "replication": 3, "configs": configs}


def definitions(count: int) -> dict[str, Definition]:
    """The first `count` definitions. Raises ValueError when there are not so many."""
    topics = dict(islice((pair for kind in (events(), tables()) for pair in kind), count))
    if len(topics) < count:
        raise ValueError(f"COUNT: there are {len(topics)} definitions, not {count}")
    return topics


def main() -> None:
    """Print the definitions that were asked for, as YAML."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=COUNT_DEFAULT, metavar="COUNT")
    try:
        topics = definitions(parser.parse_args().count)
    except ValueError as error:
        parser.error(str(error))
    yaml.safe_dump({"topics": topics}, sys.stdout, sort_keys=False)


if __name__ == "__main__":
    main()
