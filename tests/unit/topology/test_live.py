"""The broker's definitions to a value."""

from typing import Any

from delayctl.topology.duration import Duration
from delayctl.topology.live import Live, live_from_definitions
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.record import Record

# As RabbitMQ 3.10.8 exports them.
DEFINITIONS: dict[str, Any] = {
    "rabbit_version": "3.10.8",
    "exchanges": [
        {
            "name": "delay.exchange",
            "type": "topic",
            "durable": True,
            "auto_delete": False,
            "internal": False,
            "arguments": {"alternate-exchange": "delay.unrouted.exchange", "x-other": 1},
        }
    ],
    "queues": [
        {
            "name": "delay.1m.queue",
            "durable": True,
            "auto_delete": False,
            "arguments": {
                "x-message-ttl": 60000,
                "x-dead-letter-exchange": "delay.exchange",
                "x-max-length": "10",
                "x-max-priority": 5,
            },
        }
    ],
    "bindings": [
        {
            "source": "delay.exchange",
            "destination": "orders.queue",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {},
        },
        {
            "source": "delay.exchange",
            "destination": "site.exchange",
            "destination_type": "exchange",
            "routing_key": "",
            "arguments": {"x-match": "all", "delay-3": True},
        },
    ],
    "policies": [
        {"vhost": "/", "name": "p", "pattern": "^d", "apply-to": "queues", "priority": 3, "definition": {"expires": 1}},
        {"vhost": "/", "name": "short", "pattern": "^s", "definition": {}},
    ],
    "parameters": [
        {"component": "federation-upstream", "name": "up", "value": {"uri": "amqp://elsewhere"}},
        {
            "component": "operator_policy",
            "name": "limits",
            "value": {"pattern": "", "apply-to": "queues", "priority": 0, "definition": {"max-length": 7}},
        },
    ],
}


def test_definitions_become_a_value() -> None:
    """Every kind of object, with arguments told apart and defaults filled in."""
    record = Record(frozenset({"delay.exchange"}))

    assert live_from_definitions(DEFINITIONS, record=record) == Live(
        version="3.10.8",
        exchanges={
            "delay.exchange": Exchange(
                "delay.exchange", "topic", "delay.unrouted.exchange", extra=freeze_arguments({"x-other": 1})
            )
        },
        queues={
            "delay.1m.queue": Queue(
                "delay.1m.queue",
                Settings(ttl=Duration(60_000), dead_letter_exchange="delay.exchange"),
                extra=freeze_arguments({"x-max-length": "10", "x-max-priority": 5}),
            )
        },
        bindings=frozenset(
            {
                Binding("delay.exchange", "queue", "orders.queue", "k"),
                Binding(
                    "delay.exchange",
                    "exchange",
                    "site.exchange",
                    "",
                    freeze_arguments({"x-match": "all", "delay-3": True}),
                ),
            }
        ),
        policies=(
            Policy("p", "^d", "queues", 3, freeze_arguments({"expires": 1})),
            Policy("short", "^s", "all", 0, ()),
        ),
        operator_policies=(Policy("limits", "", "queues", 0, freeze_arguments({"max-length": 7})),),
        record=record,
    )


def test_an_empty_virtual_host_is_an_empty_value() -> None:
    """Whatever the broker leaves out of its answer is not there."""
    assert live_from_definitions({}) == Live()


def test_newer_brokers_name_their_version_otherwise() -> None:
    """Both spellings are understood."""
    assert live_from_definitions({"rabbitmq_version": "4.3.6"}).version == "4.3.6"


def test_bindings_are_found_by_both_ends() -> None:
    """An exchange has those that begin and those that end at it; a queue of the same name has its own."""
    begins, ends = Binding("here", "queue", "there"), Binding("there", "exchange", "here")
    queue = Binding("there", "queue", "here")
    live = Live(bindings=frozenset({begins, ends, queue}))

    assert set(live.bindings_at("exchange", "here")) == {begins, ends}
    assert set(live.bindings_at("queue", "here")) == {queue}
    assert set(live.bindings_at("exchange", "elsewhere")) == set()
