"""Broker ids on the command line, and brokers as they are shown."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from quorate.cli import brokers
from quorate.cli.output import CommandError
from quorate.cli.simulated_brokers import StandIn
from quorate.controller.brokers.messages import ListedBroker, Listener
from quorate.records.ids import ClusterId

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9093)


def broker(broker_id: int, *, fenced: bool = False, leaving: bool = False) -> ListedBroker:
    return ListedBroker(broker_id, 7, bytes(16), (LISTENER,), None, fenced, leaving)


def test_ids_and_ranges_are_taken_once_each_in_order() -> None:
    assert brokers.parse_ids("4-6, 1,5") == (1, 4, 5, 6)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "3-1", "1-99999"])
def test_what_is_no_list_of_ids_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="--ids"):
        brokers.parse_ids(text)


def test_brokers_are_shown_a_line_each() -> None:
    shown = brokers.broker_lines([broker(1), broker(2, fenced=True), broker(3, leaving=True)])
    assert [line.split() for line in shown] == [
        ["BrokerId", "Epoch", "State", "Rack", "Listeners"],
        ["1", "7", "active", "-", "PLAINTEXT://127.0.0.1:9093"],
        ["2", "7", "fenced", "-", "PLAINTEXT://127.0.0.1:9093"],
        ["3", "7", "shutting-down", "-", "PLAINTEXT://127.0.0.1:9093"],
    ]


def test_a_broker_of_another_log_is_one_line_whatever_it_says() -> None:
    odd = replace(broker(2**31 - 1), rack="a\nb", listeners=(Listener("\x1b", "h", 1),))
    assert [line.split() for line in brokers.broker_lines([odd])][1:] == [
        ["2147483647", "7", "active", r"a\nb", r"\x1b://h:1"]
    ]


def test_a_broker_as_json() -> None:
    assert brokers.broker_json(broker(1)) == {
        "id": 1,
        "epoch": 7,
        "incarnationId": "AAAAAAAAAAAAAAAAAAAAAA",
        "state": "active",
        "rack": None,
        "listeners": ["PLAINTEXT://127.0.0.1:9093"],
    }


@pytest.mark.parametrize(
    ("obstacle", "is_hurried", "why"),
    [
        ("", True, "a second stop signal came before the quorum's answer"),
        ("", False, "the quorum gave no answer in time"),
        ("others lag", True, "others lag"),
    ],
)
def test_a_broker_that_stops_without_a_permit_says_why(
    obstacle: str, *, is_hurried: bool, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in = StandIn(brokers._request(1, ClusterId("c")), epoch=7, obstacle=obstacle)
    brokers._warn_of_remaining([stand_in], is_hurried=is_hurried)
    assert f"without a shutdown permit: 1: {why}; their" in capsys.readouterr().err


def test_register_takes_its_flags() -> None:
    parser = argparse.ArgumentParser()
    brokers.register(parser.add_subparsers())
    arguments = parser.parse_args(["brokers", "register", "--ids", "1-6", "--once"])
    assert (arguments.ids, arguments.once, arguments.run) == ("1-6", True, brokers.run)
