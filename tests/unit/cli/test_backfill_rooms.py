"""What a backfill wants of the broker before it begins: levels that wait as the file says, and a route for the key."""

from dataclasses import replace

import pytest
from delayctl.cli.backfill_rooms import check_key, check_waits, routes_from
from delayctl.spark.taken_keys import Routes
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.figures import Figures
from delayctl.topology.model import Binding, Settings, Topology
from delayctl.topology.parse import read_spec
from delayctl.topology.routing import Network
from delayctl.topology.status import LevelStatus, Status

FILE = """
version: 1
delay: {levels: [15m, 1h]}
queues: {orders: {}}
routes: [{key: "order.#", delay: 15m, to: orders}]
"""
WANTED = Settings(ttl=Duration.parse("1h"), dead_letter_exchange="delay.exchange")
LEVEL = LevelStatus("1h", "delay.1h.queue", True, WANTED, WANTED, (), Figures(), None, None, None, is_own=True)


def status(*levels: LevelStatus) -> Status:
    """A topology with these levels."""
    return Status("/", "4.3.0", levels, (), (), None, 0, False, ())


def desired() -> Topology:
    """What the file describes."""
    return expand(read_spec(FILE, {}, file="topology.yaml"))


def with_keys(*keys: str) -> Network:
    """The file's network, but for what is bound to the exit."""
    network = Network.of_topology(desired())
    bindings = [binding for binding in network.bindings if binding.source != "delay.exchange"]
    return replace(network, bindings=(*bindings, *(Binding("delay.exchange", "queue", "orders", key) for key in keys)))


def test_levels_that_wait_as_the_file_says_are_fine() -> None:
    """So is what belongs to somebody else, and what the file does not ask for."""
    foreign = replace(LEVEL, settings=Settings(), is_own=False)

    check_waits(status(LEVEL, foreign, replace(LEVEL, settings=Settings(), wanted=None)), "topology.yaml")


@pytest.mark.parametrize(
    ("level", "fault"),
    [
        (
            replace(LEVEL, settings=replace(WANTED, ttl=Duration(1_000)), policies=("policy short", "operator policy x")),
            "delay.1h.queue lets messages out after 1s, not after 1h (policy short, operator policy x)",
        ),
        (replace(LEVEL, settings=replace(WANTED, ttl=None)), "delay.1h.queue never lets messages out, which it should after 1h"),
        (
            replace(LEVEL, settings=replace(WANTED, dead_letter_exchange="else")),
            "delay.1h.queue lets them out to else, not to delay.exchange",
        ),
        (replace(LEVEL, settings=replace(WANTED, dead_letter_exchange=None)), "delay.1h.queue lets them out to nowhere, not to delay.exchange"),
        (replace(LEVEL, exit_is_missing=True), "delay.1h.queue lets them out to delay.exchange, which is not there"),
    ],
    ids=["sooner", "never", "elsewhere", "nowhere", "no exit"],
)  # fmt: skip
def test_levels_that_do_not_are_refused(level: LevelStatus, fault: str) -> None:
    """With what differs, and where to see more."""
    with pytest.raises(DelayctlError) as refused:
        check_waits(status(LEVEL, level), "topology.yaml")

    assert str(refused.value) == (
        f"Error: the levels do not wait as the file says: {fault}; nothing was sent\n"
        "  fix: delayctl plan topology.yaml shows what differs, and what can be done about it"
    )


@pytest.mark.parametrize(
    ("key", "bound", "fix"),
    [
        ("typo", ("order.#",), "correct --routing-key, or add a route for it to topology.yaml and apply that"),
        ("order.paid", (), "delayctl apply topology.yaml: the file has a route for it"),
    ],
)
def test_a_key_that_no_route_takes_is_refused(key: str, bound: tuple[str, ...], fix: str) -> None:
    """The broker counts; the file says only what may be done."""
    with pytest.raises(DelayctlError) as refused:
        check_key(key, desired(), with_keys(*bound), "topology.yaml")

    assert (refused.value.what, refused.value.fix) == (
        f"no route takes the routing key '{key}': every message would be parked in delay.unrouted.queue; nothing was sent",
        fix,
    )


def test_a_key_that_somebody_takes_is_not() -> None:
    """Be it a route of others; and where nobody can be asked, nobody refuses."""
    check_key("typo", desired(), with_keys("#"), "topology.yaml")
    check_key("typo", desired(), None, "topology.yaml")


def test_routes_are_those_of_the_broker_or_else_of_the_file() -> None:
    """Those that are bound to the exit."""
    assert routes_from(desired(), with_keys("b", "a.*")) == Routes(("a.*", "b"), "delay.unrouted.queue")
    assert routes_from(desired(), None) == Routes(("order.#",), "delay.unrouted.queue")
