"""tools/build_image.py: which program builds, and what it is told."""

from __future__ import annotations

import importlib.util
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_image", ROOT / "tools" / "build_image.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(folder: Path, name: str, status: int) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_first_program_that_answers_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "docker", 1)  # a client without a daemon
    program(tmp_path, "buildah", 0)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert load().find_builder() == ["buildah", "build"]


def test_without_a_program_there_is_no_builder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert load().find_builder() == []


def test_the_builder_is_told_dockerfile_tag_and_time() -> None:
    command = load().build_command(["my", "builder"], "quorate:x", "python:3.12-slim", 17)

    assert command == [
        *("my", "builder", "--file", "deploy/images/quorate/Dockerfile", "--tag", "quorate:x"),
        *("--build-arg", "SOURCE_DATE_EPOCH=17", "--build-arg", "BASE_IMAGE=python:3.12-slim", "."),
    ]


def test_the_image_has_what_the_dockerfile_promises() -> None:
    text = (ROOT / "deploy/images/quorate/Dockerfile").read_text()
    final = text.rpartition("\nFROM ")[2]

    # What the final image takes away is in no layer of it.
    assert final.startswith("scratch\n")
    assert "RUN" not in final
    assert text.count("ARG BASE_IMAGE=python:3.13-slim\n") == 1
    assert "--require-hashes" in text
    assert 'ENTRYPOINT ["quorate"]' in final
    assert "USER 65532:65532" in final
    assert "HEALTHCHECK" not in text
    assert not re.search(r"apt|gcc|curl", text)
    for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE):
        for source in line.split():
            assert (ROOT / source).exists(), source
