"""`python -m quorate.consensus --config FILE` runs one controller."""

from __future__ import annotations

import argparse
import sys

from quorate.consensus.service import main_controller


def main() -> int:
    """Run the controller; the exit status."""
    parser = argparse.ArgumentParser(prog="quorate controller")
    parser.add_argument("--config", required=True, help="a properties file in Kafka's style")
    parser.add_argument("--bench-raw", action="store_true", help="a log of opaque records")
    parser.add_argument(
        "--stop-with-stdin",
        action="store_true",
        help="stop when standard input ends, as it does with the process that started this one",
    )
    arguments = parser.parse_args()
    return main_controller(
        arguments.config,
        is_raw=arguments.bench_raw,
        stops_with_stdin=arguments.stop_with_stdin,
    )


if __name__ == "__main__":
    sys.exit(main())
