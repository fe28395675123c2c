"""Brokers to be killed, and the accounts of all that was sent, shown at the end."""

from collections.abc import Callable, Iterator

import pytest

from testbed.needs import needed
from tests.conftest import fresh_vhost
from tests.faults.account import Account
from tests.faults.killable import Killable, killable_container, killable_node
from tests.support.rabbit import Rabbit

WAYS = {"native": killable_node, "container": killable_container}
ACCOUNTS: list[tuple[str, Account]] = []


@pytest.fixture(scope="module", params=sorted(WAYS, reverse=True))
def killable(request: pytest.FixtureRequest) -> Iterator[Killable]:
    """A broker of the test's own, on both ends of the range."""
    with needed(WAYS[request.param]()) as broker:
        yield broker


@pytest.fixture
def mortal(killable: Killable) -> Iterator[Rabbit]:
    """A virtual host of a broker that will be killed."""
    with fresh_vhost(killable.broker) as host:
        yield host


@pytest.fixture
def account(request: pytest.FixtureRequest) -> Callable[[str], Account]:
    """Opens an account that is shown at the end of the run."""

    def opened(version: str) -> Account:
        name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", " ")
        ACCOUNTS.append((version, Account(f"{version} {name}")))
        return ACCOUNTS[-1][1]

    return opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show every account."""
    if ACCOUNTS:
        terminalreporter.section("accounts of the fault tests")
        for _, account in ACCOUNTS:
            terminalreporter.line(repr(account))
