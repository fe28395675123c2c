"""A message on the simulated broker, and what publishers and consumers get to see of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from delayctl.simulator.rabbitmq_death import Deaths, Ends
from delayctl.topology.routing import FURTHER_KEYS

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_consumer import Consumer
    from delayctl.simulator.rabbitmq_queue import MessageQueue

Headers = Mapping[str, object]
FORGOTTEN: Final = -1  # Instead of the number of returns: nobody looks at what happened to the message elsewhere.
CC, BCC = FURTHER_KEYS


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties that AMQP 0-9-1 gives a message, headers apart; None means not set."""

    content_type: str | None = None
    content_encoding: str | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None

    def without_expiration(self) -> "Properties":
        """The same without an expiration: what a message has after it died once."""
        return self if self.expiration is None else replace(self, expiration=None)


NO_PROPERTIES: Final = Properties()


class Message:
    """One copy of a message: in one queue, or with the consumer that has to acknowledge it.

    `number` counts publishes: all copies of one share it. `further` are the routing keys beside `key`, the last of them
    `bcc`, which nobody gets to see. `returns` counts how often it came back to this queue, `failures` how often it was
    rejected, on new brokers in any queue; `place` orders what came back. A copy that is with a consumer is never changed: what it gives back is
    another one.
    """

    __slots__ = (
        "bcc",
        "body",
        "deaths",
        "ends",
        "exchange",
        "expires",
        "failures",
        "further",
        "headers",
        "key",
        "number",
        "place",
        "properties",
        "returns",
    )
    number: int
    exchange: str
    key: str
    body: bytes
    headers: Headers | None
    properties: Properties
    further: tuple[str, ...]
    bcc: tuple[str, ...]
    deaths: Deaths
    ends: Ends | None
    expires: int | None
    returns: int
    failures: int
    place: int

    @property
    def is_redelivered(self) -> bool:
        """Whether a consumer had it before: from this queue, or from another that it died in."""
        return self.returns > 0 or (self.returns == 0 and self.failures > 0)

    def copy(self) -> "Message":
        """A copy for another queue."""
        other = new_message(self.number, self.exchange, self.key, self.body, self.headers, self.properties)
        other.further, other.bcc, other.deaths = self.further, self.bcc, self.deaths
        other.ends = self.ends
        other.returns, other.failures = self.returns, self.failures
        return other

    def snapshot(self) -> "Message":
        """A copy to look at."""
        other = self.copy()
        other.expires = self.expires
        return other

    def back(self, *, is_failure: bool) -> "Message":
        """The copy that a consumer gives back to the queue: place and expiry stay."""
        other = self.copy()
        other.expires, other.place = self.expires, self.place
        other.returns = max(self.returns, 0) + 1
        other.failures += is_failure
        return other


def new_message(  # noqa: PLR0917 (a million are made, and keywords take time)
    number: int, exchange: str, key: str, body: bytes, headers: Headers | None, properties: Properties
) -> Message:
    """A message as it is published; a function, since it takes twice the time to call an `__init__`."""
    message = Message()
    message.number = number
    message.exchange = exchange
    message.key = key
    message.body = body
    message.headers = headers
    message.properties = properties
    message.further = message.bcc = message.deaths = ()
    message.ends = message.expires = None
    message.returns = message.failures = message.place = 0
    return message


# What was published without headers and expiration, never came back and died once at most: when it expires, number, exchange,
# key, body, properties if there are any, deaths. A million of them may wait: plain tuples of plain values are small, made in no
# time, and the garbage collector learns at the first look that it need not look at them again.
Plain = tuple[int | None, int, str, str, bytes, Properties | None, Deaths]
Kept = Message | Plain


def unpacked(kept: Kept) -> Message:
    """A message, however it was kept."""
    if isinstance(kept, Message):
        return kept
    expires, number, exchange, key, body, properties, deaths = kept
    message = new_message(number, exchange, key, body, None, properties or NO_PROPERTIES)
    message.expires, message.deaths = expires, deaths
    return message


def expiry_of(kept: Kept) -> int | None:
    """When a message expires, however it is kept."""
    return kept[0] if isinstance(kept, tuple) else kept.expires


def note_further_keys(message: Message, headers: Headers) -> None:
    """Keep the keys that the headers CC and BCC add; a consumer sees the first of these headers only."""
    message.bcc = _keys(headers.get(BCC))
    message.further = (*_keys(headers.get(CC)), *message.bcc)
    if BCC in headers:
        message.headers = {name: value for name, value in headers.items() if name != BCC}


def _keys(value: object) -> tuple[str, ...]:
    return tuple(key for key in value if isinstance(key, str)) if isinstance(value, list | tuple) else ()


class Delivery:
    """A message as it is handed to a consumer, or taken with `get`; to be acknowledged or rejected once."""

    __slots__ = ("_headers", "consumer", "is_open", "kept", "place", "source")

    kept: Kept
    place: int  # The message's, where that can't tell.
    source: "MessageQueue"
    consumer: "Consumer | None"
    is_open: bool  # Whether an answer is awaited.
    _headers: dict[str, object] | None

    @property
    def message(self) -> Message:
        """What was handed out; most of them nobody looks at, so it is unpacked when somebody does."""
        kept = self.kept
        if isinstance(kept, tuple):
            self.kept = kept = unpacked(kept)
            kept.place = self.place
        return kept

    @property
    def queue(self) -> str:
        """The queue that it comes from."""
        return self.source.name

    @property
    def exchange(self) -> str:
        """The exchange that it was last sent to: a dead-letter exchange, where it died before."""
        return self.message.exchange

    @property
    def key(self) -> str:
        """The routing key that it has now."""
        return self.message.key

    @property
    def body(self) -> bytes:
        """The payload."""
        kept = self.kept
        return kept[4] if isinstance(kept, tuple) else kept.body

    @property
    def properties(self) -> Properties:
        """The properties, headers apart."""
        return self.message.properties

    @property
    def redelivered(self) -> bool:
        """Whether it was delivered before, and came back."""
        return self.message.is_redelivered

    @property
    def headers(self) -> dict[str, object]:
        """The publisher's headers and the broker's: x-death (its times in whole seconds), x-delivery-count."""
        if self._headers is None:
            self._headers = self.source.visible_headers(self.message, is_consumed=self.consumer is not None)
        return self._headers

    def __repr__(self) -> str:
        return f"Delivery({self.queue!r}, {self.exchange!r}, {self.key!r}, {self.body[:40]!r})"


def new_delivery(kept: Kept, source: "MessageQueue", consumer: "Consumer | None") -> Delivery:
    """A message that is handed out, and needs no answer; a function for the same reason as `new_message`."""
    delivery = Delivery()
    delivery.kept = kept
    delivery.place = 0
    delivery.source = source
    delivery.consumer = consumer
    delivery.is_open = False
    delivery._headers = None
    return delivery


@dataclass(frozen=True, slots=True)
class Publication:
    """What the broker answers to a publish: the queues that it went to, and those of them that refused it."""

    queues: tuple[str, ...] = ()
    refused_by: tuple[str, ...] = ()
    is_returned: bool = False

    @property
    def is_nacked(self) -> bool:
        """Whether a queue refused it: the publisher gets basic.nack."""
        return bool(self.refused_by)

    @property
    def is_confirmed(self) -> bool:
        """Whether the publisher gets basic.ack; also after basic.return, and where it went nowhere."""
        return not self.refused_by
