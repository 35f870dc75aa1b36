"""Workers find what they need of the source imported."""

from __future__ import annotations

import ast
import subprocess
import sys

IN_A_WORKER = """
from quorate.pipeline.session import session
def seen(_):
    import gc, sys
    # Before this function came, only what runs before a fork can have imported them.
    return "quorate.pipeline.source.frame_builder" in sys.modules, gc.get_freeze_count() > 0
with session("local[1]") as spark:
    print(spark.sparkContext.parallelize([0], 1).map(seen).collect()[0])
"""


def test_a_worker_begins_with_the_source() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_WORKER], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert ast.literal_eval(done.stdout) == (True, True)
