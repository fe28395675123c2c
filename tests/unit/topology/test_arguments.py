"""Settings to and from what the broker calls them."""

from dataclasses import fields

import pytest
from delayctl.topology.arguments import (
    argument_name,
    exchange_arguments,
    policy_definition,
    policy_key,
    policy_settings,
    queue_arguments,
    split_arguments,
    split_exchange_arguments,
)
from delayctl.topology.duration import Duration
from delayctl.topology.model import Exchange, Queue, Settings, freeze_arguments

EVERYTHING = Settings(
    type="quorum",
    ttl=Duration(60_000),
    max_length=10,
    max_bytes=1_000,
    overflow="reject-publish",
    dead_letter_exchange="delay.exchange",
    dead_letter_key="key",
    dead_letter_strategy="at-least-once",
    expires=Duration(5),
    delivery_limit=3,
    retry_type="failed",
    retry_min=Duration(200),
    retry_max=Duration(500),
)
SPELLED = {
    "x-queue-type": "quorum",
    "x-message-ttl": 60_000,
    "x-max-length": 10,
    "x-max-length-bytes": 1_000,
    "x-overflow": "reject-publish",
    "x-dead-letter-exchange": "delay.exchange",
    "x-dead-letter-routing-key": "key",
    "x-dead-letter-strategy": "at-least-once",
    "x-expires": 5,
    "x-delivery-limit": 3,
    "x-delayed-retry-type": "failed",
    "x-delayed-retry-min": 200,
    "x-delayed-retry-max": 500,
}


def test_settings_are_spelled_as_queue_arguments() -> None:
    """Durations become milliseconds, and what Settings has no word for stands beside them."""
    queue = Queue("q", EVERYTHING, extra=freeze_arguments({"x-max-priority": 5}))

    assert queue_arguments(queue) == SPELLED | {"x-max-priority": 5}


def test_what_is_not_set_is_not_spelled() -> None:
    """A queue without settings has no arguments."""
    assert queue_arguments(Queue("q")) == {}


def test_queue_arguments_are_read_as_settings() -> None:
    """What is known becomes a setting, the rest stays as it was."""
    assert split_arguments(SPELLED | {"x-max-priority": 5}) == (EVERYTHING, (("x-max-priority", 5),))


@pytest.mark.parametrize(
    ("name", "value"), [("x-message-ttl", "60000"), ("x-max-length", True), ("x-overflow", 5), ("x-queue-type", None)]
)
def test_an_argument_of_the_wrong_type_is_kept_apart(name: str, value: object) -> None:
    """The broker tells "60000" from 60000, and so must a comparison."""
    assert split_arguments({name: value}) == (Settings(), ((name, value),))


def test_settings_are_spelled_as_a_policy() -> None:
    """A policy carries all but the type of a queue, sorted by name."""
    without_type = {name.removeprefix("x-"): value for name, value in SPELLED.items() if name != "x-queue-type"}

    assert policy_definition(EVERYTHING) == freeze_arguments(without_type)


def test_a_policy_is_read_as_settings() -> None:
    """What a policy says about other things is passed over."""
    definition = freeze_arguments({"message-ttl": 60_000, "ha-mode": "all"})

    assert policy_settings(definition) == Settings(ttl=Duration(60_000))


def test_every_field_has_a_name_on_the_broker() -> None:
    """No setting can be added without saying how it is spelled."""
    names = [field.name for field in fields(Settings)]

    assert [argument_name(name) for name in names] == list(SPELLED)
    assert [policy_key(name) for name in names] == [None, *(name.removeprefix("x-") for name in list(SPELLED)[1:])]


def test_an_alternate_exchange_is_an_argument() -> None:
    """It is spelled without x-, and read back from there."""
    exchange = Exchange("e", alternate="spare", extra=freeze_arguments({"x-other": 1}))

    arguments = exchange_arguments(exchange)

    assert arguments == {"alternate-exchange": "spare", "x-other": 1}
    assert split_exchange_arguments(arguments) == ("spare", (("x-other", 1),))
