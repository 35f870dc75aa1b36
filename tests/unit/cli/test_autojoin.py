"""`quorate autojoin` from the command line."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quorate.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_settings_may_come_from_the_environment_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUORATE_AUTOJOIN_NAMESPACE", "ns")
    monkeypatch.delenv("QUORATE_AUTOJOIN_STATEFULSET", raising=False)
    assert main(["autojoin"]) == 1
    assert "autojoin.statefulset is missing" in capsys.readouterr().err


def test_without_its_libraries_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.startswith("quorate.autojoin")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kopf", None)
    assert main(["autojoin"]) == 1
    assert "install quorate[operator]" in capsys.readouterr().err
