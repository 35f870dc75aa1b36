"""Names in a cluster of Kubernetes: what the operator writes, and what the chart has."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from quorate.autojoin import annotations as notes
from quorate.autojoin.actions import Decision, Wait, WaitReason
from quorate.autojoin.annotations import Condition, encode_state
from quorate.autojoin.bootstrap_record import BootstrapRecord, encode_record, record_name
from quorate.autojoin.reconciler import Cluster
from quorate.autojoin.state import PersistedState
from quorate.records.ids import ClusterId, DirectoryId, NodeId, ReplicaKey
from quorate.rpc.health import LIVENESS, READINESS, STARTUP
from tests.tools.public.syntax import PART, ROOT, forwarded, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHART: Final = ROOT / "deploy" / "helm" / "quorate"
_NOTE: Final = re.compile(r'(?<![\w./-])quorate/[a-z-]+(?=[":])')
_SUFFIX: Final = re.compile(r'"suffix" "(-[a-z-]+)"')
_ALERT: Final = re.compile(r"^- alert: (\w+)", re.MULTILINE)
_LABEL: Final = re.compile(r"labels: \{(\w+): (\w+)\}")


def kubernetes() -> Iterator[str]:
    """Annotations, labels, objects, conditions, and reasons of Events."""
    key = ReplicaKey(NodeId(1), DirectoryId(b"\1" * 16))
    yield from (f"annotation or label: {name}" for name in texts("quorate/[a-z-]+"))
    yield from (
        f"key of quorate/memory: {name}" for name in json.loads(encode_state(PersistedState()))
    )
    yield from (f"condition: {kind}" for kind in (notes.HEALTHY, notes.IN_STEP))
    condition = Condition(notes.HEALTHY, status=True, reason="", message="", since="")
    yield from (f"key of quorate/conditions: {name}" for name in condition.as_json())
    for reason in forwarded(Cluster.post_event.__name__, 0):
        if reason[0].isupper():
            yield f"reason of an Event: {reason}"
    for reason in forwarded(notes.unknown.__name__, 1):
        yield f"reason of a condition: {reason}"
    rest = Decision(Wait(WaitReason.IN_STEP, ""), (), PersistedState())
    for each in notes.conditions_of(rest, {}, has_leader=True, now=""):
        yield f"reason of a condition: {each.reason}"
    yield from (f"service of health checks: {name}" for name in (LIVENESS, READINESS, STARTUP))
    yield f"ConfigMap {record_name('STATEFULSET')}"
    for name in encode_record(BootstrapRecord(ClusterId("c"), key)):
        yield f"ConfigMap {record_name('STATEFULSET')}: {name}"
    # The Lease of the StatefulSet.
    yield from (f"object {name}" for name in texts(rf"{re.escape(PART)}-autojoin"))


def chart() -> Iterator[str]:
    """Values, objects and annotations of the chart, its alerts and dashboard, and runbooks."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    yield from (f"value {path}" for path in _leaves(values))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    yield from (f"value {path}" for path in _properties(schema))
    for path in _templates():
        text = path.read_text(encoding="utf-8")
        yield from (f"annotation or label: {name}" for name in _NOTE.findall(text))
        yield from (f"object RELEASE{suffix}" for suffix in _SUFFIX.findall(text))
    alerts = (CHART / "files" / "alerts.yaml").read_text(encoding="utf-8")
    yield from (f"alert {name}" for name in _ALERT.findall(alerts))
    yield from (f"alert label {key}={text}" for key, text in _LABEL.findall(alerts))
    for path in (ROOT / "docs" / "runbooks").glob("*.md"):
        yield f"runbook {path.name}"
    dashboard = json.loads((CHART / "files" / "dashboard.json").read_text(encoding="utf-8"))
    yield f"dashboard {dashboard['uid']}"
    yield from (f"dashboard variable {each['name']}" for each in dashboard["templating"]["list"])


def _templates() -> Iterator[Path]:
    for path in (CHART / "templates").rglob("*"):
        if path.suffix in (".yaml", ".tpl"):
            yield path


def _leaves(values: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 - YAML
    if isinstance(values, dict) and values:
        for key, inner in values.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path


def _properties(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    for key, inner in schema.get("properties", {}).items():
        name = f"{path}.{key}" if path else key
        if "properties" in inner:
            yield from _properties(inner, name)
        else:
            yield name
