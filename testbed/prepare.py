"""Fetching and building beforehand, so that the first broker starts as quickly as the next."""

from testbed.broker import BrokerUnavailable
from testbed.cache import say
from testbed.container import prepare_container
from testbed.server import fetched_server, installed_server


def prepare(kind: str) -> None:
    """Put into the cache what brokers of this kind need; `any` takes what this machine can have."""
    if kind == "native":
        prepare_native()
    elif kind == "container":
        prepare_container()
    else:
        prepare_any()


def prepare_any() -> None:
    """Prepare every kind that this machine can have, and raise only if there is none."""
    reasons: list[str] = []
    for each in (prepare_native, prepare_container):
        try:
            each()
        except BrokerUnavailable as error:
            say(f"left out: {error.reasons[0]}")
            reasons += error.reasons[:1]
    if len(reasons) == 2:
        raise BrokerUnavailable(*reasons)


def prepare_native() -> None:
    """Fetch what a private node needs, where no RabbitMQ is installed."""
    server = installed_server() or fetched_server()
    say(f"a private node is there: {server.script}")
