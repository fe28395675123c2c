"""Parked messages that are moved on a simulated broker, to where the broker still leads."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika
import pytest
from delayctl.cli.redrive import decision
from delayctl.consumers.homes import Homes, Known, Stays
from delayctl.consumers.message import Message
from delayctl.consumers.moved import Moved
from delayctl.consumers.mover import Mover
from delayctl.consumers.outcome import Park
from delayctl.consumers.pull import Pull
from delayctl.consumers.sighting import Wanted
from delayctl.publishers.choice import Ways
from delayctl.publishers.publisher import DelayPublisher
from delayctl.testing.simulated import SimulatedBroker
from delayctl.topology.access import access_from
from delayctl.topology.expand import expand
from delayctl.topology.model import Binding, thaw
from delayctl.topology.parse import read_spec
from delayctl.topology.routing import Network
from pika.adapters.blocking_connection import BlockingChannel

FILE = """version: 1
delay: {levels: [1s], any: {unit: 1s, steps: 6}}
exchanges: {shop.exchange: {}}
routes:
  - {from: shop.exchange, key: order.created, delay: 1s, to: orders.queue}
  - {key: "reminder.#", delay: any, to: reminders.queue}
retry:
  orders.queue: {levels: [1s], max: 1, park: shared.dlq}
  mails.queue: {levels: [1s], max: 1, park: shared.dlq}
"""
SPEC = read_spec(FILE, {}, file="topology.yaml")
NETWORK = Network.of_topology(expand(SPEC))
UNROUTED = "delay.unrouted.queue"
DELAY_HEADERS = {"delay-top": "5", "delay-5": True, "delay-2": True, "delay-0": True}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SimulatedBroker]:
    """The shop, with a ladder."""
    file = tmp_path / "topology.yaml"
    file.write_text(FILE)
    with SimulatedBroker(file, in_turn=False) as broker:
        yield broker


@pytest.fixture
def channel(broker: SimulatedBroker) -> Iterator[BlockingChannel]:
    """For what others do to it."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def binding(destination: str, key: str = "", **header: str) -> Binding:
    """One of the bindings of the file."""
    wanted = set(header.items())
    (found,) = (
        each
        for each in NETWORK.bindings
        if (each.destination, each.key) == (destination, key) and wanted <= set(each.arguments)
    )
    return found


def without(*bindings: Binding, network: Network = NETWORK) -> Network:
    """What is left when these are gone."""
    return replace(network, bindings=frozenset(network.bindings) - set(bindings))


def redrive(broker: SimulatedBroker, queue: str, network: Network = NETWORK, **options: Any) -> Moved:
    """Move all that is there."""
    access, known = access_from(broker.url), Known.of(SPEC)
    decide = decision(Homes(known, network, **options), Wanted().wants)
    with (
        DelayPublisher(access, topology=Ways(known.exit, ()), name="test") as publisher,
        Pull(access, queue, name="test") as pull,
    ):
        moved = Mover(pull, decide, publisher).run(pull.ready)
    broker.settle()
    return moved


def told(moved: Moved) -> tuple[dict[str, int], dict[Stays, int]]:
    """What went where, and what stays."""
    return dict(moved.sent), dict(moved.left)


def only(broker: SimulatedBroker, queue: str) -> Message:
    """The one message of a queue."""
    (message,) = broker.messages(queue)
    return message


class TestLadder:
    """What had no step, and what came down from the ladder and had no route."""

    def test_what_the_ladder_had_no_step_for_keeps_its_delay(
        self, broker: SimulatedBroker, channel: BlockingChannel
    ) -> None:
        """Once there is the step it waits there, and comes out when it shall."""
        step = binding("delay.any.05.exchange", **{"delay-top": "5"})
        arguments = {name: thaw(value) for name, value in step.arguments}
        channel.exchange_unbind(step.destination, step.source, "", arguments)
        broker.publish("call", key="reminder.1", delay="37s", message_id="r-1")

        before = redrive(broker, UNROUTED, without(step))
        channel.exchange_bind(step.destination, step.source, "", arguments)
        after = redrive(broker, UNROUTED)

        no_step = Stays(
            "delay.any.exchange has no step '5' for it",
            "give the ladder (any) more steps in the file and apply it; or name a queue with --to, which ends the delay",
        )
        assert told(before) == ({}, {no_step: 1})
        assert told(after) == ({"delay.any.05.queue": 1}, {})
        broker.advance("36s900ms")
        assert broker.messages("reminders.queue") == []
        broker.advance("101ms")
        assert only(broker, "reminders.queue").message_id == "r-1"

    def test_what_has_waited_takes_no_step_with_it(self, broker: SimulatedBroker) -> None:
        """At the exit the waiting is over, and what is sent on there shall not wait at a ladder again."""
        broker.publish("call", exchange="", key=UNROUTED, message_id="r-1")
        broker.publish("call", exchange="delay.exchange", key="lost.1", message_id="r-2", headers=DELAY_HEADERS)
        lost = Binding("delay.exchange", "queue", "reminders.queue", "lost.#")

        network = replace(NETWORK, bindings=frozenset({*NETWORK.bindings, lost}))
        access = access_from(broker.url)
        with Pull(access, UNROUTED, name="test") as pull:
            decisions = [decision(Homes(Known.of(SPEC), network), Wanted().wants)(each) for each in pull.take(2)]

        stays, onward = decisions
        assert isinstance(stays, Stays)
        assert stays.why == f"no route for key '{UNROUTED}' at the default exchange"
        assert not isinstance(onward, Stays)
        assert set(onward.properties.headers or {}) == {"delay-history"}
        assert (onward.exchange, onward.to) == ("delay.exchange", "reminders.queue")


class TestBoundNoMore:
    """The exit takes all, and parks what has no way: so it is asked before whether there is one."""

    @pytest.fixture
    def parked(self, broker: SimulatedBroker) -> SimulatedBroker:
        """A broker with an order that was given up."""
        broker.consumer({"orders.queue": lambda _: Park("the bank is away")})
        broker.publish("x", exchange="shop.exchange", key="order.created", message_id="o-1")
        broker.advance("1s")
        assert only(broker, "shared.dlq").parked == "the bank is away"
        return broker

    def test_a_key_that_leads_nowhere(self, parked: SimulatedBroker, channel: BlockingChannel) -> None:
        """It stays as it is, with the reason."""
        back = binding("orders.queue", "delay.retry.orders.queue")
        channel.queue_unbind(back.destination, back.source, back.key)

        moved = redrive(parked, "shared.dlq", without(back))

        why = "orders.queue is not bound to delay.exchange by the key delay.retry.orders.queue"
        fix = "run delayctl apply, which puts it back, and redrive again"
        assert told(moved) == ({}, {Stays(why, fix): 1})
        assert (only(parked, "shared.dlq").parked, parked.messages(UNROUTED)) == ("the bank is away", [])

    @pytest.mark.parametrize("options", [{}, {"to": "orders.queue"}], ids=["by itself", "--to"])
    def test_a_queue_that_is_gone(self, parked: SimulatedBroker, options: dict[str, Any]) -> None:
        """Also where it was named."""
        gone = {name: queue for name, queue in NETWORK.queues.items() if name != "orders.queue"}
        kept = (each for each in NETWORK.bindings if each.destination != "orders.queue")
        network = replace(NETWORK, queues=gone, bindings=frozenset(kept))

        moved = redrive(parked, "shared.dlq", network, **options)

        fix = "run delayctl apply, which puts it back, and redrive again"
        assert told(moved) == ({}, {Stays("orders.queue is not there", fix): 1})

    def test_an_origin_that_leads_nowhere(self, parked: SimulatedBroker) -> None:
        """It came by the exit, where its key is bound no more."""
        route = binding("orders.queue", "order.created")

        moved = redrive(parked, "shared.dlq", without(route), by_origin=True)

        (stays,) = moved.left
        assert (moved.sent, stays.why) == ({}, "no route for key 'order.created' at delay.exchange")

    def test_why_it_was_parked_survives_a_way_round(self, broker: SimulatedBroker, channel: BlockingChannel) -> None:
        """Parked by way of the queue of what has no route, it is still known where it belongs."""
        park = binding("shared.dlq", "delay.park.shared.dlq")
        channel.queue_unbind(park.destination, park.source, park.key)
        broker.consumer({"orders.queue": lambda _: Park("the bank is away")})
        broker.publish("x", exchange="shop.exchange", key="order.created", message_id="o-1")
        broker.advance("1s")
        channel.queue_bind(park.destination, park.source, park.key)

        first = redrive(broker, UNROUTED)
        there = only(broker, "shared.dlq")
        second = redrive(broker, "shared.dlq", to=None)

        assert told(first) == ({"shared.dlq": 1}, {})
        assert (there.parked, there.headers["delay-queue"], there.key) == (
            "the bank is away",
            "orders.queue",
            "order.created",
        )
        assert told(second) == ({"orders.queue": 1}, {})
