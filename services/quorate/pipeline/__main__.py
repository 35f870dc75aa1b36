"""`python -m quorate.pipeline JOB ...`; also the application file for spark-submit."""

from __future__ import annotations

from quorate.pipeline.command import main

if __name__ == "__main__":
    raise SystemExit(main())
