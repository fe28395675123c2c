"""Which broker is used: the one that is named, else the cheapest that this machine can give."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from urllib.parse import urlsplit

from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.container import ready_container
from testbed.native import native_node
from testbed.probe import answers

Way = Callable[[], AbstractContextManager[RunningBroker]]


@contextmanager
def find_broker() -> Iterator[RunningBroker]:
    """Give a running broker: DELAYCTL_URL, a container at hand, an installed RabbitMQ, Debian's, in this order."""
    url = os.environ.get("DELAYCTL_URL")
    with ExitStack() as stack:
        # A broker that the user named and that does not answer is an error, not a reason to use another one.
        yield given_broker(url) if url else first_of((ready_container, native_node), stack)


def first_of(ways: Sequence[Way], stack: ExitStack) -> RunningBroker:
    """Enter the first way that works, or raise with the reasons of all of them."""
    reasons: list[str] = []
    for way in ways:
        try:
            return stack.enter_context(way())
        except BrokerUnavailable as error:
            reasons += error.reasons
    raise BrokerUnavailable(*reasons)


def given_broker(url: str) -> RunningBroker:
    """Return the broker that the environment names, or raise if it does not answer."""
    management_url = os.environ.get("DELAYCTL_MANAGEMENT_URL") or default_management_url(url)
    broker = answers("given by DELAYCTL_URL", url=url, management_url=management_url, timeout=5.0)
    if broker is None:
        host = urlsplit(url).hostname
        raise BrokerUnavailable(
            f"DELAYCTL_URL: the broker at {host} does not answer on AMQP and on its management API "
            f"(DELAYCTL_MANAGEMENT_URL, else port 15672), or refuses the credentials",
            ways=["start that broker, correct DELAYCTL_URL, or unset it to have one started"],
        )
    return broker


def default_management_url(url: str) -> str:
    """Return the management address that goes with an AMQP address: same host, port 15672."""
    host = urlsplit(url).hostname or "127.0.0.1"
    return f"http://[{host}]:15672" if ":" in host else f"http://{host}:15672"
