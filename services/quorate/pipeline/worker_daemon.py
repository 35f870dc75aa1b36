"""The process of which Spark forks its Python workers: `spark.python.daemon.module`.

Spark puts PySpark as a zip in front of the path, and Python compiles what it imports of a zip each
time: half a second in each of the four processes that a query over the source needs. Here the
installed PySpark is imported, which `session` has found to be of the same release. What workers
need of the source is imported once, before they are forked.
"""

from __future__ import annotations

import gc
import runpy
import sys

_ARCHIVE = ".zip"
_WORKER = "pyspark.worker"


def main() -> None:
    sys.path[:] = [place for place in sys.path if not place.endswith(_ARCHIVE)]
    if _WORKER in sys.argv:
        import quorate.pipeline.source.batch_reader
        import quorate.pipeline.source.decoding
        import quorate.pipeline.source.mending  # noqa: F401 - for the workers to come

        # A worker collects garbage after each task: modules are none.
        gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
