"""`python -m quorate.consensus --config FILE` runs one controller."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from quorate.consensus.hosting import host_metadata
from quorate.consensus.service import main_controller

if TYPE_CHECKING:
    from quorate.consensus.hosting import Hosting


def main(hosting: Hosting = host_metadata) -> int:
    """Run a controller of metadata, or of what a measurement has it host; the exit status."""
    parser = argparse.ArgumentParser(prog="quorate controller")
    parser.add_argument("--config", required=True, help="a properties file in Kafka's style")
    parser.add_argument(
        "--stop-with-stdin",
        action="store_true",
        help="stop when standard input ends, as it does with the process that started this one",
    )
    arguments = parser.parse_args()
    return main_controller(
        arguments.config,
        hosting=hosting,
        stops_with_stdin=arguments.stop_with_stdin,
    )


if __name__ == "__main__":
    sys.exit(main())
