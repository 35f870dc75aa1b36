"""`python -m quorate.consensus --config FILE` runs one controller."""

from __future__ import annotations

import argparse
import sys

from quorate.consensus.service import main_controller


def main() -> int:
    """Run the controller; the exit status."""
    parser = argparse.ArgumentParser(prog="quorate controller")
    parser.add_argument("--config", required=True, help="a properties file in Kafka's style")
    return main_controller(parser.parse_args().config)


if __name__ == "__main__":
    sys.exit(main())
