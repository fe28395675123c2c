"""The pytest plugin: a simulated RabbitMQ for every test that asks for one.

Every pytest run loads it where delayctl is installed, so that it imports next to nothing before a test asks.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from delayctl.testing.simulated import SimulatedBroker
    from delayctl.topology.model import Topology
    from delayctl.topology.spec import Spec

_NAME = "delay_topology"
_BROKER = pytest.StashKey["SimulatedBroker"]()
_LONGEST_LOG = 200  # Lines; of more, the last ones.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a project name its topology file once."""
    parser.addini(_NAME, "the topology file that delay_broker holds, relative to the root of the project", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Let a test name a topology file of its own."""
    config.addinivalue_line(
        "markers", f"{_NAME}(file, values={{}}): the topology file that delay_broker holds in this test"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Show what happened on the broker where a test failed."""
    broker = item.stash.get(_BROKER, None)
    if broker is not None and call.when == "call" and call.excinfo is not None:
        item.add_report_section("call", "broker log", broker.log_text(last=_LONGEST_LOG))


@pytest.fixture
def delay_topology(request: pytest.FixtureRequest) -> "str | Path | Spec | Topology | None":
    """What delay_broker holds: the file of the marker, else that of the configuration. To be overridden at will."""
    marker = request.node.get_closest_marker(_NAME)
    if marker is None:
        file = request.config.getini(_NAME)
        return request.config.rootpath / file if file else None
    if len(marker.args) != 1 or marker.kwargs.keys() - {"values"}:
        raise pytest.UsageError(f"write @pytest.mark.{_NAME}(file), or @pytest.mark.{_NAME}(file, values={{…}})")
    from delayctl.publishers.known import read_topology  # noqa: PLC0415

    return read_topology(request.config.rootpath / marker.args[0], marker.kwargs.get("values", {}))


@pytest.fixture
def delay_broker(
    request: pytest.FixtureRequest, delay_topology: "str | Path | Spec | Topology | None"
) -> "Iterator[SimulatedBroker]":
    """A simulated RabbitMQ on a port of its own, in virtual time, with the topology in it."""
    from delayctl.testing.simulated import SimulatedBroker  # noqa: PLC0415

    with SimulatedBroker(delay_topology) as broker:
        request.node.stash[_BROKER] = broker
        yield broker
