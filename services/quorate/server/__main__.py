"""`python -m quorate.server --config FILE` runs one controller."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from quorate.process.queued_output import queue_standard_streams
from quorate.process.standard_descriptors import open_standard_descriptors
from quorate.process.stop_signals import STOP_SIGNALS

if TYPE_CHECKING:
    from quorate.server.state_machine import StateMachineFactory


def main(state_machine_factory: StateMachineFactory | None = None) -> int:
    """Run a controller with the metadata or another state machine; return the exit status."""
    open_standard_descriptors()
    STOP_SIGNALS.keep()
    queue_standard_streams()
    parser = argparse.ArgumentParser(prog="quorate controller")
    parser.add_argument("--config", required=True, help="a properties file in Kafka's style")
    parser.add_argument(
        "--stop-with-stdin",
        action="store_true",
        help="stop when standard input ends, as it does with the process that started this one",
    )
    arguments = parser.parse_args()
    # Loading these takes a second, in which a stop signal may come.
    from quorate.server.service import main_controller
    from quorate.server.state_machine import make_metadata_state_machine

    return main_controller(
        arguments.config,
        state_machine_factory=state_machine_factory or make_metadata_state_machine,
        stops_with_stdin=arguments.stop_with_stdin,
    )


if __name__ == "__main__":
    sys.exit(main())
