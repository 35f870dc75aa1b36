from __future__ import annotations

from typing import TYPE_CHECKING

from tools import fetch_kafka, fetched_folder

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

# Stands in for Maven: it copies one jar to wherever -DoutputDirectory says, or fails.
MAVEN = """#!/bin/sh
for argument; do
    case $argument in -DoutputDirectory=*) folder=${argument#*=} ;; esac
done
[ -z "$MAVEN_FAILS" ] || { echo "no such repository"; exit 1; }
mkdir -p "$folder" && echo a jar > "$folder/kafka.jar"
"""


def fake_maven(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pom, and programs that do as Maven and Java do."""
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (("mvn", MAVEN), ("java", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/bin:/usr/bin")
    pom = folder / "pom.xml"
    pom.write_text("<project/>")
    return pom


def test_the_folder_is_that_of_the_checkout_or_the_one_that_is_named() -> None:
    assert fetch_kafka.jars_folder({}) == fetched_folder.ROOT / ".kafka"
    named = {"QUORATE_KAFKA_JARS": "/var/jars"}
    assert str(fetch_kafka.jars_folder(named)) == "/var/jars"


def test_jars_are_fetched_and_belong_to_their_pom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pom = fake_maven(tmp_path, monkeypatch)
    folder = tmp_path / "cache" / "jars"
    assert not fetch_kafka.is_complete(folder, pom)
    assert fetch_kafka.fetch(folder, pom) is None
    assert fetch_kafka.is_complete(folder, pom)
    assert (folder / "kafka.jar").read_text() == "a jar\n"
    pom.write_text("<project><!-- another release --></project>")
    assert not fetch_kafka.is_complete(folder, pom)
    assert fetch_kafka.fetch(folder, pom) is None
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["jars"]


def test_a_failure_leaves_nothing_and_says_what_maven_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pom = fake_maven(tmp_path, monkeypatch)
    monkeypatch.setenv("MAVEN_FAILS", "yes")
    problem = fetch_kafka.fetch(tmp_path / "cache" / "jars", pom)
    assert problem is not None
    assert "no such repository" in problem
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_with_something_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pom = fake_maven(tmp_path, monkeypatch)
    folder = tmp_path / "photographs"
    folder.mkdir()
    (folder / "one.jpg").touch()
    problem = fetch_kafka.fetch(folder, pom)
    assert problem is not None
    assert "QUORATE_KAFKA_JARS" in problem
    assert [path.name for path in folder.iterdir()] == ["one.jpg"]


def test_a_missing_program_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    problem = fetch_kafka.fetch(tmp_path / "jars")
    assert problem is not None
    assert problem.startswith("mvn is not on the PATH")
