"""The flags that all commands share, and the words in which they fail."""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from quorate.cli.connection import (
    add_connection_arguments,
    channel_kind,
    extend_deadline,
    pinned,
    run_command,
    servers_of,
)
from quorate.cli.output import CommandError
from quorate.client.controller_calls import OutcomeUnknownError
from quorate.rpc.channels import ChannelKind
from quorate.settings.transport import Transport
from tests.certificates import DAY, Authority

if TYPE_CHECKING:
    from pathlib import Path

    from quorate.client.controller_client import ControllerClient


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    actions = parser.add_subparsers(required=True)
    add_connection_arguments(parser, [actions.add_parser("act")], has_pin=True)
    return parser.parse_args(arguments)


def test_flags_may_stand_before_the_action_and_after_it() -> None:
    arguments = parsed("--bootstrap-controller", "h:1", "act", "--timeout-ms", "5", "-o", "json")
    assert (arguments.bootstrap_controller, arguments.timeout_ms, arguments.output) == (
        "h:1",
        5,
        "json",
    )
    assert (arguments.controller, arguments.min_offset) == (None, 0)


def test_the_pinned_controller_comes_first() -> None:
    arguments = parsed("act", "--bootstrap-controller", "a:1,b:2", "--controller", "b:2")
    assert servers_of(arguments) == [("b", 2), ("a", 1)]
    assert pinned(arguments) == ("b", 2)
    assert pinned(parsed("act")) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("act",), "give --bootstrap-controller"),
        (("act", "--bootstrap-controller", "x"), "--bootstrap-controller: 'x'"),
        (("act", "--controller", "x"), "--controller: 'x'"),
    ],
)
def test_a_missing_or_malformed_server_names_the_flag(
    arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        servers_of(parsed(*arguments))


@pytest.mark.parametrize("error", [OutcomeUnknownError("h:1: gone"), CommandError("h:1: gone")])
def test_a_failed_command_says_why_and_exits_with_1(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails(_: ControllerClient, __: argparse.Namespace) -> int:
        raise error

    assert run_command(fails, parsed("act", "--controller", "h:1")) == 1
    assert capsys.readouterr().err.endswith("h:1: gone\n")


def test_a_variable_for_other_programs_is_a_warning_of_a_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def succeeds(_: ControllerClient, __: argparse.Namespace) -> int:
        return 0

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "unix:///dev/otel-grpc.sock")
    assert run_command(succeeds, parsed("act", "--controller", "127.0.0.1:1")) == 0
    said = capsys.readouterr().err
    assert said.startswith("warning: nothing is traced: OTEL_EXPORTER_OTLP_ENDPOINT is 'unix:///")
    assert said.count("\n") == 1


def test_an_argument_that_is_no_text_is_shown_with_the_remedy(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def encode(_: ControllerClient, __: argparse.Namespace) -> int:
        "topic-\udcff".encode()
        return 0

    assert run_command(encode, parsed("act", "--bootstrap-controller", "127.0.0.1:1")) == 1
    said = capsys.readouterr().err
    assert said == "error: 'topic-\\udcff' has bytes that are no UTF-8: give it as UTF-8 text\n"


@pytest.mark.parametrize(
    ("flag", "text", "words"),
    [
        ("--timeout-ms", "0", "argument --timeout-ms: 0: it must be 1 to 2147483647"),
        ("--timeout-ms", "9_000", "argument --timeout-ms: '9_000': a whole number is needed"),
        ("--min-offset", "-1", "argument --min-offset: -1: it must be 0 or more"),
        ("--min-offset", "٣", "argument --min-offset: '٣': a whole number is needed"),
    ],
)
def test_a_number_that_does_not_fit_names_its_flag(
    flag: str, text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed("act", "--controller", "h:1", flag, text)
    assert words in capsys.readouterr().err


def test_servers_may_be_given_as_kafkas_tools_take_them() -> None:
    assert parsed("act", "--bootstrap-server", "h:1").bootstrap_controller == "h:1"


def test_a_list_ends_its_command_only_where_it_stands_still(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each item gets the whole time, however many there are before it."""
    done = []

    async def command(_: ControllerClient, __: argparse.Namespace) -> int:
        loop = asyncio.get_running_loop()
        real_time, start_s, passed_s = loop.time, loop.time(), 0.0
        loop.time = lambda: start_s + passed_s  # type: ignore[method-assign]
        try:
            for item in range(4):
                passed_s += 15
                extend_deadline()
                await asyncio.sleep(0)
                done.append(item)
            passed_s += 15
            await asyncio.sleep(0)
            passed_s += 15
            await asyncio.Event().wait()
        finally:
            loop.time = real_time  # type: ignore[method-assign]
        return 0

    arguments = parsed("act", "--controller", "127.0.0.1:1", "--timeout-ms", "20000")
    assert run_command(command, arguments) == 1
    assert done == [0, 1, 2, 3]
    assert capsys.readouterr().err.startswith(
        "error: not done within 20000 ms; tried 127.0.0.1:1: "
    )


# --- certificates ---------------------------------------------------------------------------------


def command_config(folder: Path, **properties: object) -> argparse.Namespace:
    path = folder / "client.properties"
    lines = [f"{key.replace('_', '.')}={value}\n" for key, value in properties.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return parsed("act", "--command-config", str(path))


def test_a_connection_is_plaintext_unless_a_file_says_otherwise(tmp_path: Path) -> None:
    assert channel_kind(parsed("act")) == ChannelKind()
    assert channel_kind(command_config(tmp_path, security_protocol="PLAINTEXT")) == ChannelKind()


def test_who_speaks_for_a_command_is_said_in_the_file(tmp_path: Path) -> None:
    assert channel_kind(command_config(tmp_path, grpc_transport="h2")) == ChannelKind(
        transport=Transport.H2
    )
    with pytest.raises(CommandError, match=r"^--command-config: grpc\.transport is 'h3'"):
        channel_kind(command_config(tmp_path, grpc_transport="h3"))


def test_a_program_may_write_the_properties() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"grpc.transport=h2\n")
    os.close(writer)
    try:
        arguments = parsed("act", "--command-config", f"/dev/fd/{reader}")
        assert channel_kind(arguments) == ChannelKind(transport=Transport.H2)
    finally:
        os.close(reader)


def test_certificates_are_those_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Authority().leaf("alice").write(tmp_path / "alice.pem")
    tls = channel_kind(
        command_config(
            tmp_path, security_protocol="SSL", ssl_keystore_location=store, ssl_trustore=store
        )
    ).tls
    assert tls is not None
    pair = tls.current().pair
    assert pair is not None
    assert pair.principal == "User:CN=alice"
    assert capsys.readouterr().err == (
        "warning: --command-config: ssl.trustore is not a setting of this release: it is ignored\n"
    )


def test_a_missing_or_expired_certificate_is_found_before_anybody_is_called(
    tmp_path: Path,
) -> None:
    def problem(store: Path) -> str:
        arguments = command_config(tmp_path, security_protocol="SSL", ssl_keystore_location=store)
        with pytest.raises(CommandError) as raised:
            channel_kind(arguments)
        return str(raised.value)

    missing, expired = tmp_path / "none.pem", tmp_path / "expired.pem"
    Authority().leaf("alice", valid_for=-DAY).write(expired)
    named = "--command-config: ssl.keystore.location "
    assert problem(missing).startswith(f"{named}{missing}: No such file or directory: name a")
    said = problem(expired)
    assert said.startswith(f"{named}{expired}: the certificate of User:CN=alice expired on 20")
    assert said.endswith(": renew it")
    with pytest.raises(CommandError, match=r"nowhere.* name a readable properties file"):
        channel_kind(parsed("act", "--command-config", str(tmp_path / "nowhere")))
