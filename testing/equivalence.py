"""Whether something that is declared again is the same; if not, the refusal as RabbitMQ words it."""

from collections.abc import Mapping

from delayctl.testing.refusals import PRECONDITION_FAILED, ChannelRefusal
from delayctl.topology.arguments import (
    ALTERNATE_EXCHANGE,
    argument_name,
    exchange_arguments,
    is_number_argument,
    queue_arguments,
)
from delayctl.topology.model import Exchange, Queue

_INT32 = 2**31
_OVERFLOWS = ("drop-head", "reject-publish", "reject-publish-dlx")


def check_exchange(found: Exchange, wanted: Exchange, vhost: str) -> None:
    """Refuse an exchange that is there and different."""
    what = f"exchange '{found.name}' in vhost '{vhost}'"
    _check_words(
        what,
        {
            "type": (wanted.type, found.type),
            "durable": (wanted.durable, found.durable),
            "auto_delete": (wanted.auto_delete, found.auto_delete),
            "internal": (wanted.internal, found.internal),
        },
    )
    # RabbitMQ compares no other argument of an exchange.
    _check_arguments(what, [ALTERNATE_EXCHANGE], exchange_arguments(wanted), exchange_arguments(found))


def check_queue(found: Queue, wanted: Queue, vhost: str) -> None:
    """Refuse a queue that is there and different."""
    what = f"queue '{found.name}' in vhost '{vhost}'"
    _check_words(
        what,
        {"durable": (wanted.durable, found.durable), "auto_delete": (wanted.auto_delete, found.auto_delete)},
    )
    asked, there = queue_arguments(wanted), queue_arguments(found)
    # A queue without a type is a classic one, and may be declared as such.
    for arguments in (asked, there):
        arguments.setdefault("x-queue-type", "classic")
    _check_arguments(what, sorted(asked | there), asked, there)


def check_arguments(queue: Queue, vhost: str) -> Queue:
    """Refuse a queue with arguments that make no sense; gives it back."""
    if queue.settings.type == "quorum" and not queue.durable:
        text = f"invalid property 'non-durable' for queue '{queue.name}' in vhost '{vhost}'"
        raise ChannelRefusal(PRECONDITION_FAILED, text)
    for name, value in queue_arguments(queue).items():
        if trouble := _trouble(name, value):
            raise ChannelRefusal(
                PRECONDITION_FAILED, f"invalid arg '{name}' for queue '{queue.name}' in vhost '{vhost}': {trouble}"
            )
    return queue


def _trouble(name: str, value: object) -> str | None:
    if name == argument_name("overflow") and value not in _OVERFLOWS:
        return "invalid_overflow"
    if not is_number_argument(name):
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        return f'"expected integer, got {_type(value)}"'
    return f"{{value_negative,{value}}}" if value < 0 else None


def _check_words(what: str, pairs: Mapping[str, tuple[object, object]]) -> None:
    for name, (wanted, found) in pairs.items():
        if wanted != found:
            text = f"inequivalent arg '{name}' for {what}: received '{_word(wanted)}' but current is '{_word(found)}'"
            raise ChannelRefusal(PRECONDITION_FAILED, text)


def _check_arguments(what: str, names: list[str], wanted: Mapping[str, object], found: Mapping[str, object]) -> None:
    for name in names:
        if wanted.get(name) != found.get(name):
            text = f"inequivalent arg '{name}' for {what}: received {_value(wanted.get(name))} but current is {_value(found.get(name))}"
            raise ChannelRefusal(PRECONDITION_FAILED, text)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(value: object) -> str:
    return "none" if value is None else f"the value '{_word(value)}' of type '{_type(value)}'"


def _type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if -_INT32 <= value < _INT32 else "long"
    return "longstr"
