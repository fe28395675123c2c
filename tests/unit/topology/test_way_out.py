"""Whether what had no way out has one by now."""

from dataclasses import replace

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.model import Binding
from delayctl.topology.names import Names
from delayctl.topology.parse import read_spec
from delayctl.topology.routing import Network
from delayctl.topology.way_out import NoWay, Stranded, Way, way_out

UNROUTED = "delay.unrouted.queue"
LEVELS = "version: 1\ndelay: {levels: [1m]}\nroutes:\n  - {key: 'reminder.#', delay: 1m, to: reminders.queue}\n"
WITH_A_LADDER = LEVELS.replace("[1m]", "[1m], any: {unit: 1s, steps: 3}")
STEPS = {"delay-top": "2", "delay-2": True, "delay-0": True}


def network(text: str) -> Network:
    """What is on the broker once this was applied."""
    return Network.of_topology(expand(read_spec(text, {}, file="topology.yaml")))


def lost(
    exchange: str, headers: dict[str, object] | None = None, *, is_due: bool = False, key: str = "reminder.1"
) -> Stranded:
    """A message that came by an exchange."""
    return Stranded(UNROUTED, exchange, key, headers or {}, is_due)


def test_at_the_exit_nothing_waits_any_more() -> None:
    """The steps are taken off; other headers are kept."""
    found = way_out(network(WITH_A_LADDER), Names(), lost("delay.exchange", {**STEPS, "shop": "eu"}))

    assert found == Way("delay.exchange", {"shop": "eu"}, ("reminders.queue",))


def test_at_the_door_all_of_it_is_to_come() -> None:
    """So the steps go with it, and lead it to the longest of them."""
    found = way_out(network(WITH_A_LADDER), Names(), lost("delay.any.exchange", STEPS))

    assert found == Way("delay.any.exchange", STEPS, ("delay.any.02.queue",))


@pytest.mark.parametrize("text", [LEVELS, WITH_A_LADDER])
def test_what_came_by_a_gate_goes_on_below_it(text: str) -> None:
    """By the exit, where the gates are gone with their ladder."""
    found = way_out(network(text), Names(), lost("delay.any.00.gate.exchange", {"delay-top": "1", "delay-1": True}))

    assert isinstance(found, Way)
    assert found.queues == ("reminders.queue",)


@pytest.mark.parametrize("exchange", ["delay.any.exchange", "delay.5m.exchange"])
def test_what_was_to_wait_where_nothing_is_any_more_is_not_early(exchange: str) -> None:
    """Only what says that its time is up goes out."""
    waits, is_over = (
        way_out(network(LEVELS), Names(), lost(exchange, STEPS, is_due=is_due)) for is_due in (False, True)
    )

    assert waits == NoWay(
        f"{exchange}, where it was to wait, is not there",
        f"apply a file that has {exchange} again; or name a queue with --to, which ends the delay",
    )
    assert is_over == Way("delay.exchange", {}, ("reminders.queue",))


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (lost("delay.exchange", key="mail"), "no route for key 'mail' at delay.exchange"),
        (lost("theirs.exchange"), "no route for key 'reminder.1' at theirs.exchange"),
        (lost("", key=UNROUTED), f"no route for key '{UNROUTED}' at the default exchange"),
        (lost("delay.any.exchange", {"delay-top": "9"}), "delay.any.exchange has no step '9' for it"),
        (lost("delay.any.exchange", {"delay-top": 2}), "delay.any.exchange takes nothing without the header delay-top"),
    ],
)
def test_what_has_none(message: Stranded, why: str) -> None:
    """With what keeps it, and what would help."""
    found = way_out(network(WITH_A_LADDER), Names(), message)

    assert isinstance(found, NoWay)
    assert (found.why, bool(found.fix)) == (why, True)


def test_what_would_come_back_stays() -> None:
    """Each run would deliver it once more."""
    net = network(LEVELS)
    net = replace(net, bindings=frozenset({*net.bindings, Binding("delay.exchange", "queue", UNROUTED, "#")}))

    found = way_out(net, Names(), lost("delay.exchange"))

    assert found == NoWay("it would come back to where it is, too", f"unbind {UNROUTED}, or name a queue with --to")
