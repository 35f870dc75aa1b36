"""Plain values as words, and back."""

from __future__ import annotations

import shlex

import pytest

from quorate.sim.actions.admin_requests import RemoveFromVoters
from quorate.sim.actions.client_requests import WriteRecords
from quorate.sim.actions.disks import BreakDisk
from quorate.sim.actions.network import ForgedClaim, ForgeEpoch, SplitNetwork
from quorate.sim.cases.field_codec import flat, read_value, with_fields, write_value
from quorate.sim.engine.network import NetworkOptions, PartitionShape
from quorate.sim.faults.option_mix import draw_mix
from quorate.sim.sim_options import LogOptions, WorldOptions


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (WriteRecords(), []),
        (WriteRecords(count=3, who=2), ["count=3", "who=2"]),
        (RemoveFromVoters(whom=4, force=True), ["whom=4", "force=yes"]),
        (
            SplitNetwork(shape=PartitionShape.ONE_WAY_LINK, those=(3, 1), for_us=5),
            ["shape=one_way_link", "those=3,1", "for_us=5"],
        ),
        (SplitNetwork(shape=PartitionShape.DEAF, those=(), for_us=5), ["shape=deaf", "those=-"]),
        (
            ForgeEpoch(who=1, liar=2, claim=ForgedClaim.ASKS, is_last=False),
            ["who=1", "liar=2", "claim=asks", "is_last=no"],
        ),
    ],
)
def test_only_what_is_not_at_its_default_is_written(value: object, words: list[str]) -> None:
    assert list(write_value(value))[: len(words)] == words


def test_what_lies_in_a_value_is_listed_with_its_other_fields() -> None:
    options = WorldOptions(
        voters=5, network=NetworkOptions(loss_rate=0.1), log=LogOptions(retention_bytes=-1)
    )
    words = list(write_value(options))
    assert words == ["voters=5", "loss_rate=0.1", "retention_bytes=-1"]
    assert read_value(WorldOptions, words) == options


def test_a_field_is_replaced_wherever_it_lies() -> None:
    network = NetworkOptions(loss_rate=0.1)
    options = with_fields(WorldOptions(), voters=5, network=network, retention_bytes=-1)
    assert options == WorldOptions(voters=5, network=network, log=LogOptions(retention_bytes=-1))


def test_a_field_that_there_is_not_cannot_be_replaced() -> None:
    with pytest.raises(TypeError, match="Options has no field colour"):
        with_fields(WorldOptions(), colour=2)


def test_no_two_parts_of_the_options_have_a_field_of_one_name() -> None:
    names = [name for name, _ in flat(WorldOptions())]
    assert len(names) == len(set(names))


def test_every_drawn_mix_is_read_as_it_was_written() -> None:
    for seed in range(200):
        options = draw_mix(seed)
        assert read_value(WorldOptions, write_value(options)) == options


def test_text_with_blanks_is_quoted() -> None:
    deed = BreakDisk(who=1, fault="short of descriptors", for_us=7)
    words = list(write_value(deed))
    assert words == ["who=1", "fault='short of descriptors'", "for_us=7"]
    assert read_value(BreakDisk, shlex.split(" ".join(words))) == deed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["who"], "'who': each field is needed once, as name=value"),
        (["who=1", "who=2"], "'who=2': each field is needed once"),
        (["who=x"], "who: 'x': a whole number is needed"),
        (["who=1", "when=2"], "there is no field when, only count, who"),
    ],
)
def test_a_bad_word_is_named_with_what_is_needed(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_value(WriteRecords, words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["loss_rate=x"], "loss_rate: 'x': a rate such as 0.05 is needed"),
        (["loss_rate=nan"], "loss_rate: 'nan': a rate"),
        (["auto_join=true"], "auto_join: 'true': one of yes, no is needed"),
        (["survivals=some"], "survivals: 'some': one of nothing, everything, prefix, sectors"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_needed(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_value(WorldOptions, words)


def test_what_has_no_default_is_needed() -> None:
    with pytest.raises(ValueError, match="whom is needed"):
        read_value(RemoveFromVoters, [])


def test_a_disk_has_no_fault_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="fault 'odd': one of full, failing, unreadable"):
        read_value(BreakDisk, ["who=1", "fault=odd", "for_us=1"])
