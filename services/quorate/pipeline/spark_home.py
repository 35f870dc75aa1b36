"""The Spark that a session starts, whose Python processes import the PySpark that is installed.

Spark puts PySpark as a zip in front of the path of each process of Python that it starts, and
Python compiles what it imports of a zip each time, for half a second: a query starts four of them.
"""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Final

import pyspark

from quorate.pipeline.jobs.registry import PipelineError

_START: Final = "bin/spark-submit"
_LIB: Final = "python/lib"


def find_home() -> Path:
    """SPARK_HOME, or the Spark that came with PySpark.

    PySpark itself would look above the working directory first. Raises PipelineError for another
    release, whose Java classes differ.
    """
    said = os.environ.get("SPARK_HOME")
    if said:
        home = Path(said)
        if not any(home.glob(f"jars/spark-core_*-{pyspark.__version__}*.jar")):
            raise PipelineError(
                f"SPARK_HOME: {said} is not Spark {pyspark.__version__}, as the installed PySpark"
                " is: unset it, or name that release"
            )
        return home
    installed = _folder_of("pyspark")
    # As pip installs it, as pip does with another Hadoop, and as Spark's archive has it.
    for home in (installed, installed / "spark-distribution", installed.parent.parent):
        if (home / _START).is_file():
            return home
    raise PipelineError(
        f"SPARK_HOME: PySpark in {installed} came without Spark: name the folder of"
        f" Spark {pyspark.__version__}"
    )


def link_home(home: Path, place: Path) -> Path:
    """Make `place` a home as `home` is, but for folders where that has zips of Python modules.

    Each has a link to the module of that name as this process imports it.
    """
    place.mkdir()
    for entry in home.iterdir():
        if entry.name != Path(_LIB).parts[0]:
            (place / entry.name).symlink_to(entry)
    for archive in (home / _LIB).glob("*.zip"):
        # Their names are pyspark.zip and py4j-VERSION-src.zip.
        name = archive.stem.partition("-")[0]
        folder = place / _LIB / archive.name
        folder.mkdir(parents=True)
        (folder / name).symlink_to(_folder_of(name))
    return place


def _folder_of(module: str) -> Path:
    return Path(str(import_module(module).__file__)).absolute().parent
