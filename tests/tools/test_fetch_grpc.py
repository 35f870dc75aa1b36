from __future__ import annotations

from typing import TYPE_CHECKING

from tools import fetch_grpc

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

# Stands in for Go: it makes one program wherever -o= says, or fails.
GO = """#!/bin/sh
for argument; do
    case $argument in -o=*) folder=${argument#*=} ;; esac
done
[ -z "$GO_FAILS" ] || { echo "no such module"; exit 1; }
mkdir -p "$folder" && echo a program > "$folder/h2spec"
"""


def fake_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module, and a program that does as Go does."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    module = folder / "module"
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        (module / name).touch()
    return module


def test_programs_are_built_and_belong_to_their_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_go(tmp_path, monkeypatch)
    folder = tmp_path / "cache" / "programs"
    assert not fetch_grpc.is_complete(folder, module)
    assert fetch_grpc.fetch(folder, module) is None
    assert fetch_grpc.is_complete(folder, module)
    assert (folder / "h2spec").read_text() == "a program\n"
    (module / "go.sum").write_text("another release")
    assert not fetch_grpc.is_complete(folder, module)


def test_a_failure_leaves_nothing_and_says_what_go_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = fake_go(tmp_path, monkeypatch)
    monkeypatch.setenv("GO_FAILS", "yes")
    problem = fetch_grpc.fetch(tmp_path / "cache" / "programs", module)
    assert problem is not None
    assert "no such module" in problem
    assert list((tmp_path / "cache").iterdir()) == []


def test_missing_go_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = fetch_grpc.fetch(tmp_path / "programs")
    assert problem is not None
    assert problem.startswith("go is not on the PATH")
