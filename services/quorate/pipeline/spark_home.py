"""The Spark of a session, whose Python processes import the installed PySpark.

Spark puts a zip with PySpark first on the path of each Python process that it starts. Python
compiles imports from a zip each time, which takes half a second, and a query starts four processes.
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
# Modules whose zips are pyspark.zip and py4j-VERSION-src.zip.
_MODULES: Final = ("pyspark", "py4j")


def find_home() -> Path:
    """SPARK_HOME, or the Spark that came with PySpark.

    PySpark itself would search the parent of the working directory first. Raises PipelineError for
    another release, whose Java classes differ.
    """
    said = os.environ.get("SPARK_HOME")
    if said:
        home = Path(said).absolute()
        if not any(home.glob(f"jars/spark-core_*-{pyspark.__version__}*.jar")):
            raise PipelineError(
                f"SPARK_HOME: {said} is not Spark {pyspark.__version__}, as the installed PySpark"
                " is: unset it, or name that release"
            )
        return home
    installed = _folder_of("pyspark")
    # The layouts of pip, of pip with another Hadoop, and of Spark's archive.
    for home in (installed, installed / "spark-distribution", installed.parent.parent):
        if (home / _START).is_file():
            return home
    raise PipelineError(
        f"SPARK_HOME: PySpark in {installed} came without Spark: name the folder of"
        f" Spark {pyspark.__version__}"
    )


def link_home(home: Path, place: Path) -> Path:
    """Make `place` a copy of `home` by links, without the zips of PySpark and Py4J.

    Each zip is replaced by a folder with a link to the module that this process imports. Raises
    PipelineError.
    """
    library = place / _LIB
    try:
        library.mkdir(parents=True)
        _link_all(home, place)
        _link_all(home / _LIB, library)
        for name in _MODULES:
            for archive in library.glob(f"{name}*.zip"):
                archive.unlink()
                archive.mkdir()
                (archive / name).symlink_to(_folder_of(name))
    except OSError as error:
        raise PipelineError(f"Spark does not start: {place} cannot be made: {error}") from error
    return place


def _link_all(folder: Path, place: Path) -> None:
    """Link all entries of a folder that `place` does not have."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)


def _folder_of(module: str) -> Path:
    return Path(str(import_module(module).__file__)).absolute().parent
