"""Environment of a session inside the command, without settings for other Spark installations.

A shell may have variables for a cluster, a notebook or another release. Spark and PySpark read some
forty of them, and an unsuitable one prevents the session from starting, or changes its results.
Under spark-submit all of them apply.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_PREFIXES: Final = ("SPARK_", "PYSPARK_")
# SPARK_HOME is checked (pipeline/spark_home.py); Java options apply to this command as well.
_KEPT: Final = frozenset({"SPARK_HOME", "SPARK_SUBMIT_OPTS"})
_LOOPBACK: Final = "127.0.0.1"


def prepare_environment(environment: MutableMapping[str, str], master: str, conf_dir: str) -> None:
    """Keep only variables that suit a session whose master is `master`.

    A local session reads its settings from the folder `conf_dir`, which need not exist. With
    another master the site's variables apply.
    """
    if not master.startswith("local"):
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        return
    for name in list(environment):
        if name.startswith(_PREFIXES) and name not in _KEPT:
            del environment[name]
    environment["PYSPARK_PYTHON"] = sys.executable
    environment["SPARK_CONF_DIR"] = conf_dir
    environment["SPARK_LOCAL_IP"] = _LOOPBACK
