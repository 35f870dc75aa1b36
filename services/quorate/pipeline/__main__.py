"""`python -m quorate.pipeline JOB ...`, and the file that spark-submit is given."""

from __future__ import annotations

from quorate.pipeline.command import main

if __name__ == "__main__":
    raise SystemExit(main())
