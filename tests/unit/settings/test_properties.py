"""The syntax of properties files and typed access to them."""

from __future__ import annotations

import pytest

from quorate.settings.environment import environment_name
from quorate.settings.properties import (
    ConfigError,
    Settings,
    format_properties,
    format_settings,
    parse_address,
    parse_properties,
)


def test_pairs_are_read_as_java_reads_them() -> None:
    text = "# no\n! no\n\na=1\nb : two words \nc 3\nd=x\\\n   y\ne\\ f=g\\u0041\\n\nh\na=last\n"
    assert parse_properties(text) == {
        "a": "last",
        "b": "two words",
        "c": "3",
        "d": "xy",
        "e f": "gA",
        "h": "",
    }


def test_a_line_without_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="write key=value"):
        parse_properties("=value")


def test_two_escapes_of_java_are_one_character() -> None:
    assert parse_properties("a=\\uD83D\\uDE00\nb=\\u00e9") == {"a": "\U0001f600", "b": "\u00e9"}
    with pytest.raises(ConfigError, match="has half of a character: write both of its escapes"):
        parse_properties("a=\\uD83Dx")


def test_the_environment_overrides_the_file() -> None:
    settings = Settings({"node.id": "1", "x": "y"}, {"QUORATE_NODE_ID": "7"})
    assert settings.integer("node.id", 0) == 7
    assert settings.effective == {"node.id": "7"}
    assert settings.warnings() == ("x is not a setting of this release: it is ignored",)
    assert settings.has("node.id")
    assert settings.has("x")
    assert not settings.has("y")
    assert environment_name("metadata.log.dir") == "QUORATE_METADATA_LOG_DIR"


@pytest.mark.parametrize(
    ("value", "problem"),
    [("x", "a whole number is needed"), ("-1", "it must be 0 or more")],
)
def test_a_malformed_number_names_key_and_remedy(value: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=f"k is .*{problem}"):
        Settings({"k": value}, {}).integer("k", 0)


def test_a_number_beyond_its_bounds_names_them() -> None:
    with pytest.raises(ConfigError, match="k is 9: it must be 1 to 5"):
        Settings({"k": "9"}, {}).integer("k", 1, minimum=1, maximum=5)


def test_flags_are_true_or_false() -> None:
    settings = Settings({"a": "TRUE", "b": "yes"}, {})
    assert settings.flag("a", default=False)
    assert not settings.flag("c", default=False)
    with pytest.raises(ConfigError, match="true or false"):
        settings.flag("b", default=False)


def test_choices_are_named_when_a_value_is_none_of_them() -> None:
    settings = Settings({"a": "y", "b": "z"}, {})
    assert settings.choice("a", ("x", "y")) == "y"
    assert settings.choice("c", ("x", "y")) == "x"
    with pytest.raises(ConfigError, match="b is 'z': it must be one of x, y"):
        settings.choice("b", ("x", "y"))


def test_addresses_have_a_host_and_a_port() -> None:
    assert parse_address("a", "[::1]:9094") == ("::1", 9094)
    assert parse_address("a", ":9094", may_lack_host=True) == ("", 9094)
    for text in ("host", ":9094", "host:0", "host:65536"):
        with pytest.raises(ConfigError, match=r"a has .*: write HOST:PORT"):
            parse_address("a", text)


@pytest.mark.parametrize(
    "text", ["one:9094;two:9094", "one;two:9094", "one:9094:9095", "::1:9094", "[::1;::2]:9094"]
)
def test_a_host_has_no_semicolon_and_outside_of_brackets_no_colon(text: str) -> None:
    with pytest.raises(ConfigError, match=r"controller\.quorum\.bootstrap\.servers has .*comma"):
        parse_address("controller.quorum.bootstrap.servers", text)


def test_secrets_are_hidden() -> None:
    effective = {"node.id": "1", "ssl.keystore.password": "p", "ssl.key.password": ""}
    shown = "node.id=1, ssl.keystore.password=[hidden], ssl.key.password="
    assert format_settings(effective) == shown


def test_lists_and_required_values() -> None:
    settings = Settings({"a": " x, ,y "}, {})
    assert settings.items("a", "") == ["x", "y"]
    with pytest.raises(ConfigError, match="b is missing: say so"):
        settings.required("b", "say so")


@pytest.mark.parametrize(
    "value",
    ["a\\tb", "a\\", "a\nb", "a\r\nb", "a\x0bb", "a\x85b", "a\u2028b", "a=b: c#!", "é\U0001f600"],
)
def test_a_value_that_is_written_is_read_as_it_was(value: str) -> None:
    text = format_properties({"metadata.log.dir": value, "node.id": "1"})
    assert parse_properties(text) == {"metadata.log.dir": value, "node.id": "1"}
    assert len(text.splitlines()) == 2


def test_a_plain_value_is_written_plainly() -> None:
    assert format_properties({"listeners": "GRPC://[::1]:9094"}) == "listeners=GRPC://[::1]:9094\n"
