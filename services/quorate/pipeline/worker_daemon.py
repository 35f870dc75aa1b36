"""The process from which Spark forks its Python workers: `spark.python.daemon.module`.

The modules of the source that workers need are imported once, before the forks.
"""

from __future__ import annotations

import gc
import runpy


def main() -> None:
    """Import the modules, then run PySpark's daemon."""
    import pyspark.worker  # noqa: F401 - for the workers to come

    import quorate.pipeline.source.batch_reader
    import quorate.pipeline.source.frame_builder
    import quorate.pipeline.source.record_repair  # noqa: F401

    # A worker collects garbage after each task, and should not scan the modules.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
