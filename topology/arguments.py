"""The only place that spells `x-…`: settings to and from queue arguments and policy keys."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from delayctl.topology.duration import Duration
from delayctl.topology.model import Arguments, Exchange, Queue, Settings, freeze_arguments, thaw

ALTERNATE_EXCHANGE = "alternate-exchange"
LAZY = ("x-queue-mode", "lazy")
# A consistent-hash exchange looks at one of these of a message, and at its key where neither is set.
HASH_PROPERTY = "hash-property"
HASH_HEADER = "hash-header"
STREAM_SEGMENT = "x-stream-max-segment-size-bytes"
STREAM_OFFSET = "x-stream-offset"


@dataclass(frozen=True, slots=True)
class _Word:
    """How one field of Settings is spelled on the broker, and the type it has there."""

    field: str
    argument: str
    policy: str | None
    wire_type: type
    is_duration: bool = False


_WORDS = (
    _Word("type", "x-queue-type", None, str),
    _Word("ttl", "x-message-ttl", "message-ttl", int, is_duration=True),
    _Word("max_length", "x-max-length", "max-length", int),
    _Word("max_bytes", "x-max-length-bytes", "max-length-bytes", int),
    _Word("overflow", "x-overflow", "overflow", str),
    _Word("dead_letter_exchange", "x-dead-letter-exchange", "dead-letter-exchange", str),
    _Word("dead_letter_key", "x-dead-letter-routing-key", "dead-letter-routing-key", str),
    _Word("dead_letter_strategy", "x-dead-letter-strategy", "dead-letter-strategy", str),
    _Word("expires", "x-expires", "expires", int, is_duration=True),
    _Word("delivery_limit", "x-delivery-limit", "delivery-limit", int),
    _Word("retry_type", "x-delayed-retry-type", "delayed-retry-type", str),
    _Word("retry_min", "x-delayed-retry-min", "delayed-retry-min", int, is_duration=True),
    _Word("retry_max", "x-delayed-retry-max", "delayed-retry-max", int, is_duration=True),
)
_OTHER_NUMBERS = frozenset({"x-max-priority", "x-max-in-memory-length", "x-quorum-initial-group-size"})
_BY_ARGUMENT = {word.argument: word for word in _WORDS}
_BY_POLICY_KEY = {word.policy: word for word in _WORDS if word.policy}
_BY_FIELD = {word.field: word for word in _WORDS}
# All that newer brokers say of most queues.
_JUST_CLASSIC = {"x-queue-type": "classic"}
_CLASSIC = Settings(type="classic")
assert [word.field for word in _WORDS] == [field.name for field in fields(Settings)]


def argument_name(field: str) -> str:
    """The queue argument that carries this field of Settings."""
    return _BY_FIELD[field].argument


def policy_key(field: str) -> str | None:
    """The key that carries this field of Settings in a policy, if policies can."""
    return _BY_FIELD[field].policy


def is_number_argument(argument: str) -> bool:
    """Say whether the broker takes nothing but a number for this queue argument."""
    word = _BY_ARGUMENT.get(argument)
    return argument in _OTHER_NUMBERS or (word is not None and word.wire_type is int)


def queue_arguments(queue: Queue) -> dict[str, Any]:
    """Spell a queue's settings as the arguments of queue.declare."""
    known = {
        word.argument: _to_wire(value) for word in _WORDS if (value := getattr(queue.settings, word.field)) is not None
    }
    return known | {name: thaw(value) for name, value in queue.extra}


def split_arguments(arguments: Mapping[str, object]) -> tuple[Settings, Arguments]:
    """Read queue arguments; what is unknown or of the wrong type stays apart, as it was."""
    if arguments == _JUST_CLASSIC:
        return _CLASSIC, ()
    return _split(arguments, _BY_ARGUMENT)


def policy_definition(settings: Settings) -> Arguments:
    """Spell settings as the definition of a policy."""
    spelled = {
        word.policy: _to_wire(value)
        for word in _WORDS
        if word.policy and (value := getattr(settings, word.field)) is not None
    }
    return freeze_arguments(spelled)


def policy_settings(definition: Arguments) -> Settings:
    """Read what a policy's definition says about queues."""
    return _split({name: thaw(value) for name, value in definition}, _BY_POLICY_KEY)[0]


def exchange_arguments(exchange: Exchange) -> dict[str, Any]:
    """Spell the arguments of exchange.declare."""
    alternate = {} if exchange.alternate is None else {ALTERNATE_EXCHANGE: exchange.alternate}
    return alternate | {name: thaw(value) for name, value in exchange.extra}


def split_exchange_arguments(arguments: Mapping[str, object]) -> tuple[str | None, Arguments]:
    """Read exchange arguments into the alternate exchange and the rest."""
    rest = dict(arguments)
    alternate = rest.pop(ALTERNATE_EXCHANGE, None)
    return (alternate if isinstance(alternate, str) else None), freeze_arguments(rest)


def _to_wire(value: object) -> object:
    return value.ms if isinstance(value, Duration) else value


def _split(arguments: Mapping[str, object], words: Mapping[str, _Word]) -> tuple[Settings, Arguments]:
    known: dict[str, Any] = {}
    rest: dict[str, object] = {}
    for name, value in arguments.items():
        word = words.get(name)
        # The broker tells "60000" from 60000, and so must we; bool is an int only to Python.
        if word is None or not isinstance(value, word.wire_type) or isinstance(value, bool):
            rest[name] = value
        else:
            known[word.field] = Duration(value) if word.is_duration and isinstance(value, int) else value
    return Settings(**known), freeze_arguments(rest)
