"""The process of which Spark forks its Python workers: `spark.python.daemon.module`.

Spark puts PySpark as a zip in front of the path, and Python compiles what it imports of a zip each
time, for half a second. Here the installed PySpark is imported, where there is one: `session` has
found it to be of the same release. What workers need of the source is imported once, before they
are forked.
"""

from __future__ import annotations

import gc
import runpy
import sys
from importlib.machinery import PathFinder

_ARCHIVE = ".zip"


def main() -> None:
    """Import, and be the daemon from then on."""
    installed = [place for place in sys.path if not place.endswith(_ARCHIVE)]
    if PathFinder.find_spec("pyspark", installed) is not None:
        sys.path[:] = installed
    import pyspark.worker  # noqa: F401 - for the workers to come

    import quorate.pipeline.source.batch_reader
    import quorate.pipeline.source.decoding
    import quorate.pipeline.source.mending  # noqa: F401

    # A worker collects garbage after each task: modules are none.
    gc.freeze()
    runpy.run_module("pyspark.daemon", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
