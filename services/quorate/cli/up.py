"""`quorate up`: run a local quorum with a live status table, until Ctrl-C or SIGTERM.

On a terminal a table shows every controller as it is now, below a line for each start and each
death. Elsewhere, and on a terminal that cannot move its cursor, each change of state is a line. A
directory belongs to one `up` at a time. Started again on a directory, `up` resumes its quorum.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.box import HEAVY_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from quorate.cli.argument_types import number
from quorate.cli.local_quorum import CONTROLLERS_MAX, check_ports, open_quorum, prepare
from quorate.cli.output import CommandError, fail
from quorate.cli.supervisor import Supervisor
from quorate.client.controller_client import ControllerClient
from quorate.process.stop_signals import STOP_SIGNALS
from quorate.records.errors import ErrorCode
from quorate.records.escaping import escape_unprintable
from quorate.records.value_types import value_type
from quorate.settings.properties import PORT_MAX, ConfigError
from quorate.settings.tracing import ENDPOINT, parse_endpoint
from quorate.storage.directory_lock import DirectoryLock
from quorate.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from quorate.cli.local_quorum import LocalQuorum
    from quorate.cli.supervisor import Child
    from quorate.raft.messages import DescribeQuorumResponse

POLL_INTERVAL_S: Final = 0.5
ANSWER_TIMEOUT_S: Final = 1.0
_COLUMNS: Final = ("NodeId", "Address", "Pid", "State", "Epoch", "LogEndOffset", "Lag")
_WHOLE: Final = ("NodeId", "Address", "Pid", "State")
# The terminal width from which on a column is shown.
_WIDTHS: Final = {"Address": 58, "Pid": 70, "LogEndOffset": 80}


@value_type
class Row:
    """One controller in the table; -1 stands for unknown."""

    node_id: int
    address: str
    pid: int | None
    state: str
    epoch: int = -1
    log_end: int = -1
    lag: int = -1
    remarks: str = ""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "up",
        help="run a local quorum until Ctrl-C",
        description="Run controllers as processes of this machine, start again those that end, and"
        " show their states, until Ctrl-C or SIGTERM. What they hold stays for the next time.",
    )
    parser.add_argument(
        "--controllers",
        type=number(1, CONTROLLERS_MAX),
        metavar="N",
        help="the number of controllers (default: 3, or as many as the directory has)",
    )
    parser.add_argument(
        "--data-dir",
        type=_directory,
        default=Path("data"),
        metavar="DIR",
        help="their directories and log files (default: data)",
    )
    parser.add_argument(
        "--base-port",
        type=number(1, PORT_MAX),
        metavar="P",
        help="node i listens on P+i-1, its health on P+100+i-1, its metrics on P+200+i-1"
        " (default: 9094, or that of the directory)",
    )
    parser.add_argument(
        "--otlp",
        metavar="HOST:PORT",
        help="trace elections and changes of the voters, and send the spans to this collector by"
        " OTLP over gRPC, as to Jaeger on localhost:4317",
    )
    parser.set_defaults(run=run)


def _directory(text: str) -> Path:
    if not text:
        # An empty path is the directory in which the command happens to run.
        raise argparse.ArgumentTypeError("it is empty: name a directory")
    return Path(text)


def run(arguments: argparse.Namespace) -> int:
    """Entry of the command line."""
    with ExitStack() as held:
        try:
            quorum = _prepared(arguments, held)
        except (CommandError, ConfigError, StorageError) as error:
            return fail(str(error))
        except OSError as error:
            where = error.filename or arguments.data_dir
            return fail(f"--data-dir: {where}{_problem_of(error)}; choose another directory")
        try:
            asyncio.run(_run(quorum))
        finally:
            STOP_SIGNALS.keep_on()
    return 0


def _prepared(arguments: argparse.Namespace, held: ExitStack) -> LocalQuorum:
    """The quorum, ready to be started; `held` gets the lock on its directory.

    Raises CommandError, ConfigError, StorageError, OSError.
    """
    overrides = {}
    if arguments.otlp is not None:
        overrides[ENDPOINT] = parse_endpoint("--otlp", arguments.otlp)
    quorum = _quorum_of(arguments)
    if not quorum.root.exists():
        # A start that cannot succeed creates no directory.
        check_ports(quorum)
    quorum.root.mkdir(parents=True, exist_ok=True)
    held.enter_context(DirectoryLock(str(quorum.root), "--data-dir"))
    # Another `up` may have created a quorum there before the lock was taken.
    quorum = _quorum_of(arguments)
    check_ports(quorum)
    prepare(quorum, overrides)
    return quorum


def _quorum_of(arguments: argparse.Namespace) -> LocalQuorum:
    return open_quorum(
        arguments.data_dir, controllers=arguments.controllers, base_port=arguments.base_port
    )


def _problem_of(error: OSError) -> str:
    if isinstance(error, FileExistsError):
        return " is no directory"
    if isinstance(error, NotADirectoryError):
        return " lies below a file"
    return f": {error.strerror}"


async def _run(quorum: LocalQuorum) -> None:
    stopped = asyncio.Event()
    STOP_SIGNALS.on_stop(asyncio.get_running_loop(), stopped.set)
    if stopped.is_set():
        return
    console = Console()
    servers = [node.address for node in quorum.nodes]
    # FORCE_COLOR makes `console` treat a file as a terminal, but the file would keep every table.
    has_table = console.file.isatty() and not console.is_dumb_terminal
    async with ControllerClient(servers) as client:
        if has_table:
            with Live(console=console, auto_refresh=False) as live:

                def say(line: str) -> None:
                    live.console.print(Text(escape_unprintable(line)))

                def show(rows: Sequence[Row]) -> None:
                    table = table_of(rows, quorum, live.console.width)
                    live.update(table, refresh=True)

                await _watch(Supervisor(quorum.nodes, say), client, stopped, show, say)
        else:
            changes = StatusLog(_print_line)
            supervisor = Supervisor(quorum.nodes, _print_line)
            await _watch(supervisor, client, stopped, changes.show, _print_line)


def _print_line(line: str) -> None:
    # Flushed, because the program that started this one may wait for the line.
    print(escape_unprintable(line), flush=True)


async def _watch(
    supervisor: Supervisor,
    client: ControllerClient,
    stopped: asyncio.Event,
    show: Callable[[Sequence[Row]], None],
    say: Callable[[str], None],
) -> None:
    """Run until stopped; print `ready` once, when a leader is known."""
    is_ready = False
    supervisor.start()
    try:
        while not stopped.is_set():
            supervisor.check()
            answers = await _ask_all(supervisor.children, client)
            show(rows_of(supervisor.children, answers))
            if not is_ready and leader_of(answers) is not None:
                is_ready = True
                say("ready")
            try:
                async with asyncio.timeout(POLL_INTERVAL_S):
                    await stopped.wait()
            except TimeoutError:
                continue
    finally:
        say("stopping")
        await supervisor.stop()


async def _ask_all(
    children: Sequence[Child], client: ControllerClient
) -> dict[int, DescribeQuorumResponse | str]:
    """The answer of every running controller, or its error; by node id."""
    asked = [child.node for child in children if child.pid is not None]
    answers = await asyncio.gather(
        *(client.try_describe_at(node.address, ANSWER_TIMEOUT_S) for node in asked)
    )
    return {node.node_id: answer for node, answer in zip(asked, answers, strict=True)}


# --- what is shown --------------------------------------------------------------------------------


def leader_of(
    answers: Mapping[int, DescribeQuorumResponse | str],
) -> DescribeQuorumResponse | None:
    """The answer of the leader with the highest epoch: a stale leader may not know that it is."""
    leading = [
        answer
        for answer in answers.values()
        if not isinstance(answer, str) and answer.error is ErrorCode.NONE
    ]
    return max(leading, key=lambda answer: answer.leader.epoch, default=None)


def rows_of(
    children: Sequence[Child], answers: Mapping[int, DescribeQuorumResponse | str]
) -> list[Row]:
    """Build the rows: every controller's own report, with the leader's view of its log."""
    leader = leader_of(answers)
    ends: dict[int, int] = {}
    if leader is not None:
        replicas = (*leader.voters, *leader.observers)
        ends = {s.key.node_id: s.log_end_offset for s in replicas if s.log_end_offset is not None}
    rows = []
    for child in children:
        node, answer = child.node, answers.get(child.node.node_id)
        address = f"{node.address[0]}:{node.port}"
        if child.pid is None or answer is None:
            rows.append(Row(node.node_id, address, None, "down", remarks=child.note))
            continue
        if isinstance(answer, str):
            rows.append(Row(node.node_id, address, child.pid, "no answer", remarks=answer))
            continue
        state = "seeks a leader" if answer.leader.leader_id is None else "Follower"
        if answer.error is ErrorCode.NONE:
            state = "Leader"
        end, lag = ends.get(node.node_id, -1), -1
        if end >= 0 and leader is not None and leader.leader.leader_id is not None:
            lag = ends.get(leader.leader.leader_id, end) - end
        remarks = "; ".join(answer.remarks)
        rows.append(
            Row(node.node_id, address, child.pid, state, answer.leader.epoch, end, lag, remarks)
        )
    return rows


def table_of(rows: Sequence[Row], quorum: LocalQuorum, width: int) -> Group:
    """The live table for a terminal of `width` columns, then a line for each row with remarks.

    Addresses are unwrapped down to 80 columns. Therefore the table has no frame, and no remarks. A
    narrow terminal has fewer columns, so that every state stays readable.
    """
    title = Text(escape_unprintable(f"cluster {quorum.cluster_id} in {quorum.root}"))
    table = Table(title=title, box=HEAVY_HEAD, show_edge=False, pad_edge=False)
    columns = [name for name in _COLUMNS if width >= _WIDTHS.get(name, 0)]
    for name in columns:
        if name in _WHOLE:
            table.add_column(name, no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    styles = {"Leader": "bold green", "Follower": "green", "down": "bold red"}
    for row in rows:
        numbers = ("-" if n < 0 else str(n) for n in (row.epoch, row.log_end, row.lag))
        cells = (
            str(row.node_id),
            row.address,
            "-" if row.pid is None else str(row.pid),
            f"[{styles.get(row.state, 'yellow')}]{row.state}[/]",
            *numbers,
        )
        shown = dict(zip(_COLUMNS, cells, strict=True))
        table.add_row(*(shown[name] for name in columns))
    remarks = (
        Text(escape_unprintable(f"controller {row.node_id}: {row.remarks}"))
        for row in rows
        if row.remarks
    )
    return Group(table, *remarks)


class StatusLog:
    """Reports only changes, a line for each controller in a new state or epoch."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._shown: dict[int, str] = {}

    def show(self, rows: Sequence[Row]) -> None:
        """Compare with the last report; starts and deaths have lines of their own."""
        for row in rows:
            if row.pid is None:
                self._shown.pop(row.node_id, None)
                continue
            epoch = "" if row.epoch < 0 else f" (epoch {row.epoch})"
            line = f"controller {row.node_id}: {row.state}{epoch}"
            if row.remarks:
                line += f", {row.remarks}"
            if self._shown.get(row.node_id) != line:
                self._shown[row.node_id] = line
                self._say(line)
