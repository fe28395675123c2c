"""Brokers to be killed, and the accounts of all that was sent, shown at the end."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from testbed import RunningBroker
from testbed.needs import needed
from testbed.probe import answers
from testbed.wait import until
from tests.conftest import fresh_vhost
from tests.faults.account import Account
from tests.faults.killable import Killable, killable_container, killable_node
from tests.support.rabbit import Rabbit

WAYS = {"native": killable_node, "container": killable_container}


@pytest.fixture(scope="module", params=sorted(WAYS, reverse=True))
def killable(request: pytest.FixtureRequest) -> Iterator[Killable]:
    """A broker of the test's own, on both ends of the range."""
    with needed(WAYS[request.param]()) as broker:
        yield broker


@pytest.fixture
def mortal(killable: Killable) -> Iterator[Rabbit]:
    """A virtual host of a broker that will be killed; one that a failed test left dead is started again."""
    if not _is_there(killable.broker):
        killable.start()
    with fresh_vhost(killable.broker) as host:
        yield host


def _is_there(broker: RunningBroker) -> bool:
    with suppress(TimeoutError):
        # A broker that is only busy answers in the end.
        until(lambda: answers(broker.how, url=broker.url, management_url=broker.management_url), 15)
        return True
    return False


@pytest.fixture
def account(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Account]]:
    """Opens an account that is shown at the end of the run."""
    opened: list[Account] = []

    def open_one(version: str) -> Account:
        name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", " ")
        opened.append(Account(f"{version} {name}"))
        return opened[-1]

    yield open_one
    # As text on the test's report: the one thing that comes from a process of a split run to the one that shows it.
    request.node.user_properties += [("account", repr(each)) for each in opened]
