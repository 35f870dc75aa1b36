"""Settings of all tests: the folder of stock Kafka's files, the options of the simulation tests.

Hypothesis has no deadline: a busy machine is not a failure.
"""

from __future__ import annotations

import logging
import os
import signal
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from quorate.settings.environment import environment_name
from quorate.settings.transport import TRANSPORT, Transport
from tests.lacking import lack

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "QUORATE_KAFKA_FIXTURES"
VARIABLE_OF_TRANSPORT = environment_name(TRANSPORT)

# What the environment says of tracing is meant for the run of the tests, not for what they start.
for name in [name for name in os.environ if name.startswith(("OTEL_", "TRACEPARENT"))]:
    del os.environ[name]

# A run under nohup ignores the one, and a run in the background of a script the other; so would all
# processes that the tests start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def is_of_this_test(record: logging.LogRecord) -> bool:
    """Not what grpcio's poller has for a loop that an earlier test closed: this one gets it."""
    return "PollerCompletionQueue" not in record.getMessage()


logging.getLogger("asyncio").addFilter(is_of_this_test)

settings.register_profile("quorate", deadline=None)
settings.load_profile("quorate")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options have to be known before the folder of the tests that use them is entered."""
    group = parser.getgroup("quorate")
    group.addoption("--rewrite", action="store_true", help="write transcripts and names again")
    group.addoption(
        "--swarm-seeds",
        type=int,
        default=24,
        metavar="N",
        help="simulate seeds 1 to N, at least 12 (default 24)",
    )
    _add_chaos_options(group)
    group.addoption(
        "--transport",
        choices=tuple(Transport),
        help="who speaks gRPC in all tests that start servers (default grpcio; some run with each)",
    )
    group.addoption(
        "--every-job",
        action="store_true",
        help="run all jobs of the pipeline on a Spark cluster (default one of each shape) and over "
        "each of stock Kafka's logs (default one for each job, dealt)",
    )
    group.addoption(
        "--e2e", action="store_true", help="run tests/e2e against the cluster of the kubeconfig"
    )
    group.addoption(
        "--day",
        type=date.fromisoformat,
        metavar="DATE",
        help="of tests/e2e that are run once a week only those of this day (default all)",
    )
    group.addoption(
        "--image",
        default="localhost/quorate:e2e",
        metavar="NAME:TAG",
        help="the image that tests/e2e installs (default localhost/quorate:e2e)",
    )
    group.addoption(
        "--load-image",
        default="",
        metavar="COMMAND",
        help="brings an image to the nodes, whose name is appended: 'kind load docker-image'",
    )
    group.addoption(
        "--next-image",
        default="",
        metavar="NAME:TAG",
        help="another image, to which tests/e2e upgrades",
    )
    group.addoption(
        "--nodes",
        default="",
        metavar="COMMAND",
        help="harms nodes in tests/e2e: 'tests/e2e/nodes-docker' on kind and k3d",
    )
    group.addoption(
        "--jaeger",
        default="",
        metavar="URL",
        help="Jaeger's query API for tests/e2e: http://127.0.0.1:16686",
    )
    group.addoption(
        "--otlp",
        default="http://jaeger.observability.svc:4317",
        metavar="URL",
        help="where pods send spans to in tests/e2e (http://jaeger.observability.svc:4317)",
    )


def _add_chaos_options(group: pytest.OptionGroup) -> None:
    group.addoption(
        "--chaos-seconds",
        type=float,
        default=12.0,
        metavar="S",
        help="how long real processes are harmed (default 12)",
    )
    group.addoption("--chaos-controllers", type=int, metavar="N", help="3 or 5 (default both)")
    group.addoption(
        "--chaos-kinds",
        metavar="KIND,...",
        help="faults of tests/chaos/nemesis.py, or all (default those that suit a busy machine)",
    )
    group.addoption("--chaos-seed", type=int, metavar="N", help="draw the same faults again")


def pytest_configure(config: pytest.Config) -> None:
    """The transport of all tests, and of every process that they start."""
    asked = config.getoption("--transport")
    if asked is not None:
        os.environ[VARIABLE_OF_TRANSPORT] = asked


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[logging.Logger]:
    """The root logger, put back as it was: logs are configured for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def kafka_fixtures() -> Path:
    """The folder that QUORATE_KAFKA_FIXTURES names; missing, the test fails in CI, else skips."""
    named = os.environ.get(VARIABLE)
    if not named or not (Path(named) / "schemas.json").is_file():
        lack(
            f"files of stock Kafka are needed: {VARIABLE}=FOLDER make test, "
            f"with the folder that holds schemas.json (now it is {named!r})"
        )
    return Path(named)
