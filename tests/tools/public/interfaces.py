"""Names that people type or look for: commands, settings, metrics, logs and traces."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final, get_args

from quorate.admin.call_log import CallLog
from quorate.autojoin.actions import Action, StepCause, Wait, WaitReason
from quorate.autojoin.metrics import OUTCOMES, Meters
from quorate.autojoin.reconcile_spans import ReconcileSpans
from quorate.cli.main import COMMANDS, make_parser
from quorate.controller.authorization.authorizer import Operation, ResourceKind
from quorate.raft.messages import ChangeKind, Reason, VoteRefusal
from quorate.raft.roles import TRANSITIONS
from quorate.raft.trace_events import RoleChangeCause, TraceEventKind
from quorate.server.driver.raft_driver import ExitReason
from quorate.server.metrics.definitions import CONTROLLER_METERS
from quorate.server.tracing.span_factory import SpanFactory
from quorate.settings.environment import EVERY_SETTING, environment_name
from quorate.settings.listeners import SecurityProtocol
from quorate.settings.tls import ClientAuth
from quorate.settings.transport import Transport
from quorate.storage.disaster_recovery.recovery_plan import RecoveryKind
from quorate.telemetry import tracing
from quorate.telemetry.logs import LEFT_OUT, REPEATS, TOPIC, LogFormat
from quorate.telemetry.metrics import PROCESS_METERS, CallbackCollector, process_readings
from tests.tools.public.syntax import ROOT, calls, forwarded, keys_of, modules, text_of, texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from enum import Enum

    from quorate.telemetry.metrics import MetricDefinition

# OpenTelemetry's own names, and events that have a dot.
_TRACE_PREFIXES: Final = (
    *("error", "follower", "high_watermark", "k8s", "kraft", "leader_change", "network", "peer"),
    *("role", "rpc", "server", "service", "vote"),
)
_VARIABLES: Final = (
    *("HOSTNAME", "KUBERNETES_", "OTEL_", "POD_", "PYSPARK_", "QUORATE_", "SPARK_", "TRACE"),
)
_DOCUMENTED: Final = re.compile(r"\| `quorate_(\w+)` \| (\w+)")


# --- commands and settings ------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Every command with its options, arguments and choices."""
    for command in COMMANDS:
        yield from _of_parser("quorate", make_parser(command))


def _of_parser(path: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield path
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _of_parser(f"{path} {name}", inner)
            continue
        names = action.option_strings or [f"<{action.metavar or action.dest}>"]
        for name in names:
            yield f"{path} {name}"
            for choice in action.choices or ():
                yield f"{path} {name} {choice}"


def settings() -> Iterator[str]:
    """Every property with its variable; what they and commands take; other variables."""
    for key in EVERY_SETTING:
        yield f"{key}, {environment_name(key)}"
    prefixes = "|".join(_VARIABLES)
    for name in texts(rf"(?:{prefixes})[A-Z_{{}}]*"):
        yield f"variable {name}"
    yield from _values("security protocol", SecurityProtocol)
    yield from _values("ssl.client.auth", ClientAuth)
    yield from _values("grpc.transport", Transport)
    yield from _values("log.format", LogFormat)
    yield from _values("operation", Operation)
    yield from _values("resource", ResourceKind)


# --- metrics --------------------------------------------------------------------------------------


def metrics() -> Iterator[str]:
    """Every metric with its kind, which the documents have, and its labels."""
    kinds = dict(_DOCUMENTED.findall((ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")))
    for process, meters in (("controller", CONTROLLER_METERS), ("any process", PROCESS_METERS)):
        for name, meter in _with_old_names(meters).items():
            labels = "" if meter.label is None else f" by {meter.label}"
            yield f"{process}: quorate_{name} {kinds.get(name, 'undocumented')}{labels}"
    sidecar = CallLog(0, expires_s=lambda: 0.0).registry
    for process, registry in (("sidecar", sidecar), ("operator", Meters("", 0).registry)):
        for collector in registry._collector_to_names:
            # Collectors of the process itself have none, and are those of the library.
            names: tuple[str, ...] = getattr(collector, "_labelnames", ())
            for family in collector.collect() if names else ():
                yield f"{process}: {family.name} {family.type} by {', '.join(names)}"
    for name, place in ((CallbackCollector.__name__, 1), (process_readings.__name__, 0)):
        for module, call in calls(name):
            for key in keys_of(module, call.args[place]):
                yield f"label of a process: {key}"
    yield from (f"outcome: {each}" for each in OUTCOMES)


def _with_old_names(meters: Mapping[str, MetricDefinition]) -> dict[str, MetricDefinition]:
    renamed = {meter.old: meter for meter in meters.values() if meter.old is not None}
    return {**meters, **renamed}


# --- logs and traces ------------------------------------------------------------------------------


def log_fields() -> Iterator[str]:
    """The fields of log lines in addition to the common ones, as far as code writes them down."""
    yield from (REPEATS, TOPIC, LEFT_OUT)
    for module in modules():
        for keyword in module.keywords("extra"):
            yield from keys_of(module, keyword)


def traces() -> Iterator[str]:
    """Names of spans and events, attributes and links."""
    prefixes = "|".join(_TRACE_PREFIXES)
    for name in texts(rf"(?:{prefixes})\.[a-z_{{}}]+(?:\.[a-z_{{}}]+)*"):
        yield f"kind, attribute or event: {name}"
    for method in ("add_event", tracing.event.__name__):
        for module, call in calls(method):
            event, *attributes = call.args
            # Kubernetes has events of its own, whose names have no dot.
            text = text_of(event)
            if text is None or (method != "add_event" and "." not in text):
                continue
            yield f"event: {text}"
            for each in attributes:
                yield from (f"attribute of an event: {key}" for key in keys_of(module, each))
    for _, call in calls("update_name"):
        if call.args and text_of(call.args[0]) is not None:
            yield f"name: {text_of(call.args[0])}"
    yield from (f"name: {name}" for name in forwarded(ReconcileSpans.timed.__name__, 0))
    for module in modules():
        for keyword in module.keywords("links"):
            yield from (f"link: {key}" for key in keys_of(module, keyword))
    for module, call in calls(SpanFactory.start_child.__name__, SpanFactory.round.__name__):
        for argument in call.args:
            keys = [key for key in keys_of(module, argument) if "." not in key]
            yield from (f"link: {key}" for key in keys)


# --- words that several of them have --------------------------------------------------------------


def words() -> Iterator[str]:
    """Words for causes, reasons, roles and steps in logs, traces, metrics and answers."""
    yield from _values("trace event", TraceEventKind)
    yield from _values("cause", RoleChangeCause)
    yield from _values("vote refused", VoteRefusal)
    yield from _values("change refused", Reason)
    yield from _values("voter change", ChangeKind)
    yield from _values("step of the operator because of", StepCause)
    yield from _values("operator waits", WaitReason)
    yield from _values("rescue", RecoveryKind)
    yield from (f"ending: {member.name}" for member in ExitReason)
    # `role_name` makes them of the classes.
    yield from (f"role: {role.__name__.lower()}" for _, role in TRANSITIONS)
    yield from (f"step of the operator: {step.__name__}" for step in (*get_args(Action), Wait))


def _values(of: str, members: type[Enum]) -> Iterator[str]:
    yield from (f"{of}: {member.value}" for member in members)
