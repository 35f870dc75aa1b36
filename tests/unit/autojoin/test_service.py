"""The process where it cannot start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.autojoin import service

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_missing_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("QUORATE_AUTOJOIN_STATEFULSET", raising=False)
    monkeypatch.setenv("QUORATE_AUTOJOIN_NAMESPACE", "ns")
    assert service.main_autojoin(None) == 1
    assert "quorate autojoin: autojoin.statefulset is missing" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert service.main_autojoin(str(tmp_path / "none.properties")) == 1
    assert "none.properties" in capsys.readouterr().err
