"""Fixtures: real brokers, and a virtual host of its own for every test."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from testbed import RunningBroker, container_broker, find_broker, native_node
from testbed.needs import needed
from tests.support.rabbit import Rabbit

# A shared, noisy machine makes single examples slow without making them wrong.
settings.register_profile("delayctl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("delayctl")

# Both ends of the range, or the one broker that the environment names.
WAYS = (
    {"given": find_broker} if "DELAYCTL_URL" in os.environ else {"native": native_node, "container": container_broker}
)


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
    host.api("PUT", "vhosts/{vhost}")
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
