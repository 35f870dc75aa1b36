"""The environment of Spark's processes: nothing set for another Spark, no modules by chance."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from quorate.pipeline.spark_environment import prepare_environment

if TYPE_CHECKING:
    from pathlib import Path

IN_PYTHON = """
import sys
# Spark's processes get the working directory, this one has its own path.
sys.path[:] = [folder for folder in sys.path if folder]
from quorate.pipeline.session import session
with session("local[1]") as spark:
    frame = spark.range(5).mapInPandas(lambda batches: batches, "id long")
    print(frame.count(), spark.conf.get("spark.sql.ansi.enabled"))
"""
FOR_OTHERS = {
    "PYSPARK_DRIVER_PYTHON": "jupyter",
    "PYSPARK_PIN_THREAD": "false",
    "PYSPARK_PYTHON": "/usr/bin/false",
    "PYSPARK_SUBMIT_ARGS": "--master yarn",
    "SPARK_ANSI_SQL_MODE": "false",
    "SPARK_API_MODE": "connect",
    "SPARK_LOCAL_DIRS": "/proc/nowhere",
    "SPARK_LOCAL_HOSTNAME": "nowhere.invalid",
    "SPARK_LOCAL_IP": "nowhere.invalid",
    "SPARK_MASTER": "spark://nowhere.invalid:7077",
    "SPARK_REMOTE": "sc://nowhere.invalid",
}


def prepared(environment: dict[str, str], master: str) -> dict[str, str]:
    prepare_environment(environment, master, "scratch/conf")
    return environment


def test_a_local_session_has_its_own_variables_only() -> None:
    kept = {"SPARK_HOME": "/opt/spark", "SPARK_SUBMIT_OPTS": "-Xss4m", "TMPDIR": "/scratch"}
    own = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": "scratch/conf",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    for master in ("local", "local[*]", "local[2]"):
        assert prepared(kept | FOR_OTHERS, master) == kept | own


def test_with_a_master_elsewhere_the_variables_of_the_site_hold() -> None:
    assert prepared(dict(FOR_OTHERS), "spark://master:7077") == FOR_OTHERS
    assert prepared({}, "spark://master:7077") == {"PYSPARK_PYTHON": sys.executable}


def test_neither_variables_for_others_nor_files_of_the_directory_change_a_session(
    tmp_path: Path,
) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('imported from the working directory')")
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text("spark.eventLog.enabled true\n")
    (conf / "spark-env.sh").write_text("exit 1\n")
    startup = tmp_path / "startup.py"
    startup.write_text("raise SystemExit('the startup file of an interactive Python')")
    others = FOR_OTHERS | {"SPARK_CONF_DIR": str(conf), "PYTHONSTARTUP": str(startup)}
    done = subprocess.run(
        [sys.executable, "-c", IN_PYTHON],
        env=os.environ | others,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("5 true\n", "")
