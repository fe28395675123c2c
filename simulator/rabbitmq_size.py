"""How many bytes a message's properties take as AMQP 0-9-1 encodes them: new quorum queues count them."""

from collections.abc import Mapping
from dataclasses import fields

from delayctl.simulator.rabbitmq_message import Message, Properties

_FLAGS = 2
_LENGTH = 4  # Of a table, a list or a long string, in front of it.
_FIXED = {"delivery_mode": 1, "priority": 1, "timestamp": 8}
_NAMES = tuple(field.name for field in fields(Properties))
_SMALL = range(-(2**31), 2**31)


def properties_size(message: Message) -> int:
    """The size of the flags and of every property that is set, headers included."""
    given = ((name, getattr(message.properties, name)) for name in _NAMES)
    size = sum(_FIXED.get(name) or 1 + len(value.encode()) for name, value in given if value is not None)
    # The broker takes an expiration out of what it sends, not out of what it counts.
    size += sum(1 + len(death[5]) for death in message.deaths if death[5] is not None)
    return _FLAGS + size + (_table_size(message.headers) if message.headers is not None else 0)


def _table_size(table: Mapping[str, object]) -> int:
    return _LENGTH + sum(1 + len(name.encode()) + _value_size(value) for name, value in table.items())


def _value_size(value: object) -> int:
    """One byte for the type, and the value, as clients usually choose it."""
    match value:
        case None:
            return 1
        case bool():
            return 2
        case int():
            return 5 if value in _SMALL else 9
        case float():
            return 9
        case str():
            return 1 + _LENGTH + len(value.encode())
        case bytes():
            return 1 + _LENGTH + len(value)
        case list() | tuple():
            return 1 + _LENGTH + sum(map(_value_size, value))
        case Mapping():
            return 1 + _table_size(value)
        case _:
            return 9  # A time.
