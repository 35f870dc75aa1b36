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
    arguments = parser.parse_args()
    return main_controller(arguments.config, is_raw=arguments.bench_raw)


if __name__ == "__main__":
    sys.exit(main())
