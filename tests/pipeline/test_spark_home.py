"""The Spark that a session starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import py4j
import pyspark
import pytest

from quorate.pipeline import spark_home
from quorate.pipeline.jobs.registry import PipelineError
from quorate.pipeline.spark_home import find_home, link_home

IN_PYTHON = """
from quorate.pipeline.session import session
def seen(_):
    import os, py4j, pyspark
    return [os.path.realpath(module.__file__) for module in (py4j, pyspark)]
with session("local[1]") as spark:
    print(*spark.sparkContext.parallelize([0], 1).map(seen).collect()[0])
    print(spark._jvm.java.lang.System.getProperty("sun.jnu.encoding"))
"""


def test_processes_of_python_import_what_is_installed_and_no_spark_above_the_directory_starts(
    tmp_path: Path,
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "jars").mkdir()
    stranger = tmp_path / "bin/spark-submit"
    stranger.write_text("#!/bin/sh\ntouch started\nexit 1\n", encoding="utf-8")
    stranger.chmod(0o755)
    directory = tmp_path / "work"
    directory.mkdir()
    environment = {name: said for name, said in os.environ.items() if name != "SPARK_HOME"}
    # Java would know no name of a file with other letters.
    environment["LC_ALL"] = "C"
    done = subprocess.run(
        [sys.executable, "-c", IN_PYTHON],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    installed = [os.path.realpath(str(module.__file__)) for module in (py4j, pyspark)]
    assert done.stdout.split() == [*installed, "UTF-8"]
    assert not list(directory.iterdir())


def test_a_home_is_linked_but_for_zips_of_modules(tmp_path: Path) -> None:
    home, place = tmp_path / "home", tmp_path / "place"
    (home / "jars").mkdir(parents=True)
    (home / "RELEASE").write_text("one", encoding="utf-8")
    library = home / "python/lib"
    library.mkdir(parents=True)
    names = {"pyspark.zip": pyspark, "py4j-0.10.9.9-src.zip": py4j}
    for name in (*names, "other-1.0.zip"):
        (library / name).write_bytes(b"PK")
    assert link_home(home, place) == place
    assert (place / "jars").samefile(home / "jars")
    assert (place / "RELEASE").read_text(encoding="utf-8") == "one"
    assert (place / "python/lib/other-1.0.zip").read_bytes() == b"PK"
    for name, module in names.items():
        linked = place / "python/lib" / name / module.__name__
        assert linked.samefile(Path(str(module.__file__)).parent)


def test_pyspark_without_spark_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(spark_home, "_folder_of", lambda _: tmp_path / "a/b")
    with pytest.raises(PipelineError, match=r"^SPARK_HOME: PySpark in .*/a/b came without Spark: "):
        find_home()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/spark-submit").touch()
    assert find_home() == tmp_path


def test_a_home_may_be_named_from_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    installed = find_home()
    monkeypatch.chdir(installed.parent)
    monkeypatch.setenv("SPARK_HOME", installed.name)
    assert link_home(find_home(), tmp_path / "place").is_absolute()
    assert (tmp_path / "place/jars").samefile(installed / "jars")


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PipelineError, match=r"^Spark does not start: .* cannot be made: "):
        link_home(find_home(), tmp_path / "file/place")
