"""Workers use the installed PySpark, and find what they need of the source imported."""

from __future__ import annotations

import ast
import subprocess
import sys

import pyspark

IN_A_WORKER = """
from quorate.pipeline.session import session
def seen(_):
    import gc, pyspark, sys
    # Before this function came, only what runs before a fork can have imported them.
    return (pyspark.__file__, "quorate.pipeline.source.decoding" in sys.modules,
            gc.get_freeze_count() > 0, [place for place in sys.path if place.endswith(".zip")])
with session("local[1]") as spark:
    print(spark.sparkContext.parallelize([0], 1).map(seen).collect()[0])
"""


def test_a_worker_begins_with_the_installed_pyspark_and_the_source() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_WORKER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == (pyspark.__file__, True, True, [])
