"""The order of changes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Queue, Resource, Settings, Topology
from delayctl.topology.order import Delays, Stage, creation_stage, delays_on, deletion_stage
from delayctl.topology.parse import read_spec
from delayctl.topology.plan import label
from delayctl.topology.spec import ExchangeSpec, QueueSpec, RouteSpec, Target

from tests.support.examples import ORDERS_ROUTE, live_of, shop

DIRECT = RouteSpec(("order.paid",), (Target("queue", "orders.queue"),), "orders.exchange")
TOPOLOGY = shop("5m", settings="policy", routes=(ORDERS_ROUTE, DIRECT))
DELAYS = Delays(frozenset({"delay.5m.queue"}), frozenset({"delay.5m.exchange"}))


def by_stage(stages: Mapping[str, int]) -> list[tuple[str, str]]:
    """Stages and labels, as they follow each other."""
    return [(Stage(stage).name, name) for name, stage in sorted(stages.items(), key=lambda pair: (pair[1], pair[0]))]


def test_exits_are_made_before_entrances() -> None:
    """What catches a message is there before anything leads to it."""
    assert by_stage({label(resource): creation_stage(resource, TOPOLOGY) for resource in TOPOLOGY}) == [
        ("PUT_POLICIES", "policy delay.5m.policy"),
        ("PUT_ENDS", "exchange delay.unrouted.exchange"),
        ("PUT_ENDS", "exchange orders.exchange"),
        ("PUT_ENDS", "queue delay.unrouted.queue"),
        ("PUT_ENDS", "queue orders.queue"),
        ("PUT_SAFETY_NET", "binding delay.unrouted.exchange → delay.unrouted.queue"),
        ("PUT_EXIT", "exchange delay.exchange"),
        ("PUT_WAYS_OUT", "binding delay.exchange → [order.created] orders.queue"),
        ("PUT_DELAY_QUEUES", "queue delay.5m.queue"),
        ("PUT_ENTRANCES", "exchange delay.5m.exchange"),
        ("PUT_WAYS_INTO_QUEUES", "binding delay.5m.exchange → delay.5m.queue"),
        ("PUT_WAYS_IN", "binding orders.exchange → [order.created] delay.5m.exchange"),
        ("PUT_WAYS_IN", "binding orders.exchange → [order.paid] orders.queue"),
    ]


def test_an_exchange_leads_on_before_anything_leads_there() -> None:
    """Be it straight to a queue or into a delay, what comes by the exit or by a route finds the way on."""
    to_site = RouteSpec(("site.#",), (Target("exchange", "site.exchange"),), "orders.exchange", "5m")
    on = RouteSpec(("site.made",), (Target("queue", "site.queue"),), "site.exchange")
    into_delay = RouteSpec(("site.late",), (Target("queue", "late.queue"),), "site.exchange", "5m")
    topology = shop("5m", routes=(to_site, on, into_delay))

    stages = {label(resource): creation_stage(resource, topology) for resource in topology.bindings}

    assert by_stage(stages) == [
        ("PUT_WAYS_BETWEEN_ENDS", "binding site.exchange → [site.made] site.queue"),
        ("PUT_SAFETY_NET", "binding delay.unrouted.exchange → delay.unrouted.queue"),
        ("PUT_WAYS_OUT", "binding delay.exchange → [site.#] site.exchange"),
        ("PUT_WAYS_OUT", "binding delay.exchange → [site.late] late.queue"),
        ("PUT_WAYS_INTO_QUEUES", "binding delay.5m.exchange → delay.5m.queue"),
        ("PUT_WAYS_FURTHER_IN", "binding site.exchange → [site.late] delay.5m.exchange"),
        ("PUT_WAYS_IN", "binding orders.exchange → [site.#] delay.5m.exchange"),
    ]


def test_what_comes_by_alternate_or_dead_letter_finds_the_way_on() -> None:
    """There as well the way on is made first."""
    exchanges = (
        ExchangeSpec("orders.exchange", "topic", alternate="left.exchange"),
        ExchangeSpec("left.exchange", "topic"),
    )
    orders = QueueSpec("orders.queue", arguments=(("x-dead-letter-exchange", "dead.exchange"),))
    ways = [RouteSpec(("#",), (Target("queue", f"{name}.queue"),), f"{name}.exchange") for name in ("left", "dead")]
    topology = shop("5m", exchanges=exchanges, queues=(orders,), routes=(ORDERS_ROUTE, *ways))

    stages = {binding.source: creation_stage(binding, topology) for binding in topology.bindings}

    assert (stages["left.exchange"], stages["dead.exchange"]) == (Stage.PUT_WAYS_BETWEEN_ENDS,) * 2


def test_entrances_are_removed_before_exits() -> None:
    """All that an expiring message needs stays until the delay queues are gone, the policies to the very end."""
    assert by_stage({label(resource): deletion_stage(resource, TOPOLOGY, DELAYS) for resource in TOPOLOGY}) == [
        ("CUT_WAYS_IN", "binding orders.exchange → [order.created] delay.5m.exchange"),
        ("CUT_WAYS_INTO_QUEUES", "binding delay.5m.exchange → delay.5m.queue"),
        ("DROP_ENTRANCES", "exchange delay.5m.exchange"),
        ("DROP_DELAY_QUEUES", "queue delay.5m.queue"),
        ("CUT_WAYS_OUT", "binding delay.exchange → [order.created] orders.queue"),
        ("CUT_WAYS_OUT", "binding orders.exchange → [order.paid] orders.queue"),
        ("DROP_EXIT", "exchange delay.exchange"),
        ("CUT_SAFETY_NET", "binding delay.unrouted.exchange → delay.unrouted.queue"),
        ("DROP_ENDS", "exchange delay.unrouted.exchange"),
        ("DROP_ENDS", "exchange orders.exchange"),
        ("DROP_ENDS", "queue delay.unrouted.queue"),
        ("DROP_ENDS", "queue orders.queue"),
        ("DROP_POLICIES", "policy delay.5m.policy"),
    ]


@pytest.mark.parametrize("resource", list(TOPOLOGY), ids=label)
def test_removal_comes_after_all_creation(resource: Resource) -> None:
    """A change of routes never leaves a gap in which neither way is there."""
    assert deletion_stage(resource, TOPOLOGY, DELAYS) > max(Stage.PUT_WAYS_IN, creation_stage(resource, TOPOLOGY))


def test_delays_are_found_on_the_broker() -> None:
    """Wanted or not, a queue that expires into our exit is a delay, and what leads only there an entrance."""
    live, desired = live_of(shop("1m 5m")), shop("5m")

    assert delays_on(live, desired) == Delays(
        frozenset({"delay.1m.queue", "delay.5m.queue"}), frozenset({"delay.1m.exchange", "delay.5m.exchange"})
    )


def test_a_wanted_delay_queue_is_one_whatever_it_is_now() -> None:
    """Its dead-letter exchange may be what someone has changed."""
    live = Live(queues={"delay.5m.queue": Queue("delay.5m.queue")})

    assert delays_on(live, TOPOLOGY).queues == {"delay.5m.queue"}


def test_an_exchange_that_leads_elsewhere_too_is_no_entrance() -> None:
    """It could not be dropped before its other bindings are cut."""
    retried = Queue("orders.queue", Settings(dead_letter_exchange="delay.exchange"))
    live = live_of(TOPOLOGY)
    live = replace(live, queues={**live.queues, "orders.queue": retried})

    assert delays_on(live, TOPOLOGY) == Delays(
        frozenset({"delay.5m.queue", "orders.queue"}), frozenset({"delay.5m.exchange"})
    )


def test_the_exit_is_never_an_entrance() -> None:
    """Even where all that it leads to expires into it again."""
    retried = Queue("orders.queue", Settings(dead_letter_exchange="delay.exchange"))
    live = Live(
        exchanges={"delay.exchange": Exchange("delay.exchange")},
        queues={"orders.queue": retried},
        bindings=frozenset({Binding("delay.exchange", "queue", "orders.queue", "#")}),
    )

    assert delays_on(live, TOPOLOGY).entrances == frozenset()


class TestLadder:
    """The door opens last, and closes first."""

    def topology(self) -> Topology:
        """A ladder of two steps."""
        text = "version: 1\ndelay: {any: {steps: 2}}\nroutes: [{key: a, delay: any, to: target}]\n"
        return expand(read_spec(text, {}, file="topology.yaml"))

    def of_ladder(self, stages: Mapping[str, int]) -> list[str]:
        """The labels of its objects, as they follow each other."""
        found = sorted((stage, name) for name, stage in stages.items() if ".any." in name)
        return [name for _, name in found]

    def test_no_way_leads_in_before_every_way_down_is_there(self) -> None:
        """Gates, queues, entrances; then what is between them; the ways from the door at the very end."""
        topology = self.topology()

        assert self.of_ladder({label(each): creation_stage(each, topology) for each in topology}) == [
            "exchange delay.any.00.gate.exchange",
            "exchange delay.any.01.gate.exchange",
            "queue delay.any.00.queue",
            "queue delay.any.01.queue",
            "exchange delay.any.00.exchange",
            "exchange delay.any.01.exchange",
            "binding delay.any.00.exchange → delay.any.00.queue",
            "binding delay.any.01.exchange → delay.any.01.queue",
            "binding delay.any.00.gate.exchange → delay.any.00.exchange",
            "binding delay.any.01.gate.exchange → delay.any.01.exchange",
            "exchange delay.any.exchange",
            "binding delay.any.exchange → delay.any.00.exchange",
            "binding delay.any.exchange → delay.any.01.exchange",
        ]

    def test_steps_go_one_by_one_from_the_longest(self) -> None:
        """What waits in a longer one may have to wait in the shorter."""
        topology = self.topology()
        delays = delays_on(live_of(topology), topology)

        assert self.of_ladder({label(each): deletion_stage(each, topology, delays) for each in topology}) == [
            "binding delay.any.exchange → delay.any.00.exchange",
            "binding delay.any.exchange → delay.any.01.exchange",
            "exchange delay.any.exchange",
            "binding delay.any.01.exchange → delay.any.01.queue",
            "binding delay.any.01.gate.exchange → delay.any.01.exchange",
            "queue delay.any.01.queue",
            "binding delay.any.00.exchange → delay.any.00.queue",
            "binding delay.any.00.gate.exchange → delay.any.00.exchange",
            "queue delay.any.00.queue",
            "exchange delay.any.00.exchange",
            "exchange delay.any.00.gate.exchange",
            "exchange delay.any.01.exchange",
            "exchange delay.any.01.gate.exchange",
        ]
