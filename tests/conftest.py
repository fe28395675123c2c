"""Fixtures: real brokers, and a virtual host of its own for every test."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from testbed import RunningBroker, container_broker, find_broker, native_node
from testbed.needs import needed
from tests.support.rabbit import Rabbit
from tests.support.spark import spark, spark_folder, spark_jobs
from tests.support.split import ByBroker, is_repeated, longest_first, needs_a_broker

__all__ = ["spark", "spark_folder", "spark_jobs"]  # Fixtures that are written elsewhere.

# A shared, noisy machine makes single examples slow without making them wrong.
settings.register_profile("delayctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("delayctl")

# Both ends of the range, or the one broker that the environment names.
WAYS = (
    {"given": find_broker} if "DELAYCTL_URL" in os.environ else {"native": native_node, "container": container_broker}
)


def pytest_configure() -> None:
    """Hear Ctrl-C as at a terminal: a run in the background ignores it, and all that it starts would, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what would tell nothing new; where several processes share the work, begin with what takes long."""
    if not os.environ.get("DELAYCTL_EVERYWHERE"):
        collected = {item.nodeid for item in items}
        repeated = [item for item in items if is_repeated(item.nodeid, collected)]
        items[:] = [item for item in items if not is_repeated(item.nodeid, collected)]
        config.hook.pytest_deselected(items=repeated)
    for item in filter(lambda item: needs_a_broker(item.nodeid), items):
        # A shared machine may keep a real broker from its work for seconds. What was tried again is named in the summary.
        item.add_marker(pytest.mark.flaky(reruns=2))
    if hasattr(config, "workerinput"):
        items[:] = longest_first(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByBroker:
    """Where several processes share the work, let each broker be the matter of one of them."""
    config.option.loadscopereorder = False
    return ByBroker(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the accounts of the fault tests, whichever process kept them, and why a test was tried again."""
    shown = [each for found in terminalreporter.stats.values() for each in found if isinstance(each, pytest.TestReport)]
    # A test's properties are on each of its reports; the account is made up when the test is over.
    finished = [each for each in shown if each.when == "teardown"]
    accounts = [str(text) for each in finished for name, text in each.user_properties if name == "account"]
    retried = [f"{each.nodeid}: {_reason(each)}" for each in terminalreporter.stats.get("rerun", ())]
    for title, lines in (("accounts of the fault tests", accounts), ("tried again, and why", retried)):
        if lines:
            terminalreporter.section(title)
            terminalreporter.write_line("\n".join(lines))


def _reason(report: pytest.TestReport) -> str:
    """The line that a test failed at, and what was wrong there."""
    return "\n".join(line for line in report.longreprtext.splitlines() if line.startswith((">", "E ")))


@pytest.fixture(scope="session", params=sorted(WAYS, reverse=True))
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    """Both ends of the range: a private node of Debian's package, and a container of the newest RabbitMQ."""
    with needed(WAYS[request.param]()) as running:
        yield running


@pytest.fixture
def rabbit(broker: RunningBroker) -> Iterator[Rabbit]:
    """A fresh virtual host."""
    with fresh_vhost(broker) as host:
        yield host


@contextmanager
def fresh_vhost(broker: RunningBroker) -> Iterator[Rabbit]:
    """A virtual host that is new, and gone afterwards with all that belongs to it."""
    host = Rabbit(broker, f"test-{uuid.uuid4().hex[:12]}")
    host.create()
    yield host
    host.api("DELETE", "vhosts/{vhost}")
    # The record outlives its virtual host, since it is a global parameter.
    for parameter in host.api("GET", "global-parameters"):
        if parameter["name"].startswith(f"delayctl:{host.vhost}:"):
            host.api("DELETE", f"global-parameters/{parameter['name'].replace(':', '%3A')}")


@pytest.fixture
def topology(tmp_path: Path) -> "TopologyFile":
    """A topology file to write and write again."""
    return TopologyFile(tmp_path / "topology.yaml")


class TopologyFile:
    """A topology file in a test's own folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, text: str) -> str:
        """Write the file and return its path."""
        self.path.write_text(text, encoding="utf-8")
        return str(self.path)
