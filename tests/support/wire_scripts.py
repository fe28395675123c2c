"""What RabbitMQ answers to clients, as short scripts with their answers: held against real and simulated brokers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pika
from pika import spec
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, ConnectionClosedByBroker, UnroutableError

from testbed.wait import until

Script = Callable[[BlockingChannel], Any]
CHANNEL, CONNECTION = "channel closed", "connection closed"


def version_of(url: str) -> str:
    """What a broker says of itself."""
    connection: Any = pika.BlockingConnection(pika.URLParameters(url))
    version: str = connection._impl.server_properties["version"]
    connection.close()
    return version


@dataclass(frozen=True)
class Case:
    """A script and what it comes to; `old` where brokers before 4.0 answer otherwise. `VHOST` stands for its name."""

    name: str
    script: Script
    answer: Any
    old: Any = None

    def answer_of(self, version: str) -> Any:
        """What a broker of this version answers."""
        return self.old if self.old is not None and version.startswith("3.") else self.answer


def observe(url: str, script: Script) -> Any:
    """Run a script on a connection of its own, and tell what came of it."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        result = script(connection.channel())
    except (ChannelClosedByBroker, ConnectionClosedByBroker) as error:
        kind = CHANNEL if isinstance(error, ChannelClosedByBroker) else CONNECTION
        vhost = unquote(urlsplit(url).path[1:])
        return kind, error.reply_code, error.reply_text.replace(f"vhost '{vhost}'", "vhost VHOST")
    except UnroutableError as error:
        returned = error.messages[0]
        return "returned", returned.method.reply_code, returned.method.reply_text, returned.body
    finally:
        if connection.is_open:
            connection.close()
    return result


def prepare(channel: BlockingChannel) -> None:
    """What the scripts begin with."""
    channel.queue_declare("q")
    channel.exchange_declare("x", "topic")


def _holding(channel: BlockingChannel, *bodies: bytes, queue: str = "held", **properties: Any) -> BlockingChannel:
    channel.queue_declare(queue)
    channel.confirm_delivery()
    for body in bodies:
        channel.basic_publish("", queue, body, pika.BasicProperties(**properties))
    return channel


def _got(channel: BlockingChannel, queue: str = "held", **options: Any) -> Any:
    method, _, body = channel.basic_get(queue, **options)
    return method and (method.delivery_tag, method.redelivered, method.message_count, body)


def _published(channel: BlockingChannel, exchange: str, key: str, **properties: Any) -> None:
    channel.confirm_delivery()
    channel.basic_publish(exchange, key, b"body", pika.BasicProperties(**properties), mandatory=True)


def _closed_by(channel: BlockingChannel, method: Any) -> None:
    """Send what pika would not, and ask for something: the answer is the broker's refusal."""
    inner: Any = channel
    inner._impl._send_method(method)
    channel.queue_declare("q", passive=True)


def _listen_until(channel: BlockingChannel, condition: Callable[[], bool]) -> None:
    def listen() -> bool:
        channel.connection.process_data_events(0.05)
        return condition()

    until(listen, 5, every=0)


def _ready(channel: BlockingChannel, queue: str) -> tuple[int, int]:
    found = channel.queue_declare(queue, passive=True).method
    return found.message_count, found.consumer_count


def _requeue(channel: BlockingChannel) -> Any:
    _holding(channel, b"1", b"2")
    first, second = _got(channel), _got(channel)
    channel.basic_nack(first[0], requeue=True)
    return first, second, _got(channel), _got(channel), _ready(channel, "held")


def _recover(channel: BlockingChannel) -> Any:
    _holding(channel, b"1", queue="recovered")
    first = _got(channel, "recovered")
    channel.basic_recover(requeue=True)
    return first, _got(channel, "recovered")


def _closed_channel(channel: BlockingChannel) -> Any:
    other = _holding(channel.connection.channel(), b"1", b"2", queue="kept")
    _got(other, "kept")
    other.close()
    return _got(channel, "kept", auto_ack=True), _got(channel, "kept", auto_ack=True), _got(channel, "kept")


def _ack_all(channel: BlockingChannel) -> Any:
    _holding(channel, b"1", b"2", b"3", queue="acked")
    for _ in range(3):
        _got(channel, "acked")
    channel.basic_ack(2, multiple=True)
    channel.basic_nack(3, requeue=True)
    return _got(channel, "acked")


def _prefetch(channel: BlockingChannel) -> Any:
    _holding(channel, b"1", b"2", b"3", queue="prefetched")
    came: list[tuple[int | None, bytes]] = []
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume("prefetched", lambda _, method, __, body: came.append((method.delivery_tag, body)))
    _listen_until(channel, lambda: len(came) == 2)
    before = list(came), _ready(channel, "prefetched")
    channel.basic_ack(1)
    _listen_until(channel, lambda: len(came) == 3)
    return before, came[2:], _ready(channel, "prefetched")


def _cancelled_by_delete(channel: BlockingChannel) -> Any:
    told: list[str | None] = []
    channel.queue_declare("short-lived")
    channel.add_on_cancel_callback(lambda frame: told.append(frame.method.consumer_tag))
    channel.basic_consume("short-lived", lambda *_: None, consumer_tag="me")
    channel.connection.channel().queue_delete("short-lived")
    _listen_until(channel, lambda: bool(told))
    return told


def _left_of_a_deleted_queue(channel: BlockingChannel) -> Any:
    _holding(channel, b"1", b"2", b"3", queue="doomed")
    for _ in range(3):
        _got(channel, "doomed")
    deleted = channel.queue_delete("doomed").method.message_count
    channel.basic_ack(1)
    channel.basic_nack(2, requeue=True)
    channel.basic_reject(3, requeue=False)
    return deleted, _ready(channel, "q")


def _reused_tag(channel: BlockingChannel) -> None:
    channel.basic_consume("q", lambda *_: None, consumer_tag="me")
    _closed_by(channel, spec.Basic.Consume(queue="q", consumer_tag="me"))


def _consumed_alone(channel: BlockingChannel) -> None:
    channel.basic_consume("q", lambda *_: None, exclusive=True)
    channel.connection.channel().basic_consume("q", lambda *_: None)


def _in_use(channel: BlockingChannel) -> None:
    channel.basic_consume("q", lambda *_: None)
    channel.queue_delete("q", if_unused=True)


def _auto_deleted(channel: BlockingChannel) -> None:
    channel.queue_declare("fleeting", auto_delete=True)
    channel.basic_cancel(channel.basic_consume("fleeting", lambda *_: None))
    channel.queue_declare("fleeting", passive=True)


def _auto_deleted_exchange(channel: BlockingChannel) -> None:
    channel.exchange_declare("fleeting.x", "topic", auto_delete=True)
    channel.queue_bind("q", "fleeting.x", "k")
    channel.queue_unbind("q", "fleeting.x", "k")
    channel.exchange_declare("fleeting.x", passive=True)


def _bound(channel: BlockingChannel) -> Any:
    channel.queue_declare("bound")
    channel.exchange_declare("inner", "fanout")
    channel.exchange_bind("inner", "x", "a.#")
    channel.queue_bind("bound", "inner")
    _published(channel, "x", "a.b.c")
    first = _ready(channel, "bound")
    channel.exchange_unbind("inner", "x", "a.#")
    channel.basic_publish("x", "a.b.c", b"gone")
    return first, channel.queue_purge("bound").method.message_count, _ready(channel, "bound")


def _internal(channel: BlockingChannel) -> None:
    channel.exchange_declare("internal", "topic", internal=True)
    _published(channel, "internal", "k")


def _properties(channel: BlockingChannel) -> Any:
    headers = {"n": 1, "big": 2**40, "yes": True, "nothing": None, "list": [1, {"a": "b"}], "raw": b"\xff", "text": "ä"}
    _holding(channel, b"1", queue="propertied", headers=headers, timestamp=5, priority=3, content_type="x/y", type="t")
    _, found, _ = channel.basic_get("propertied")
    return found and (found.headers, found.timestamp, found.priority, found.content_type, found.type, found.app_id)


def _large(channel: BlockingChannel) -> int:
    _holding(channel, b"z" * 1_000_000, queue="large")
    return len(channel.basic_get("large")[2] or b"")


_Q, _X = "queue 'q' in vhost VHOST", "exchange 'x' in vhost VHOST"
_NO_QUEUE = (CHANNEL, 404, "NOT_FOUND - no queue 'nope' in vhost VHOST")
_NO_EXCHANGE = (CHANNEL, 404, "NOT_FOUND - no exchange 'nope' in vhost VHOST")
_DEFAULT = (CHANNEL, 403, "ACCESS_REFUSED - operation not permitted on the default exchange")
_OTHER = "PRECONDITION_FAILED - inequivalent arg"
_NONSENSE = "PRECONDITION_FAILED - invalid arg"

CASES = (
    Case("a queue that is not there", lambda c: c.queue_declare("nope", passive=True), _NO_QUEUE),
    Case("an exchange that is not there", lambda c: c.exchange_declare("nope", passive=True), _NO_EXCHANGE),
    Case("get from nowhere", lambda c: c.basic_get("nope"), _NO_QUEUE),
    Case("consume from nowhere", lambda c: c.basic_consume("nope", lambda *_: None), _NO_QUEUE),
    Case("purge nothing", lambda c: c.queue_purge("nope"), _NO_QUEUE),
    Case("bind to nowhere", lambda c: c.queue_bind("q", "nope", "k"), _NO_EXCHANGE),
    Case("bind nothing", lambda c: c.queue_bind("nope", "x", "k"), _NO_QUEUE),
    Case("bind an exchange to nowhere", lambda c: c.exchange_bind("nope", "x", "k"), _NO_EXCHANGE),
    Case("bind to the default exchange", lambda c: c.queue_bind("q", "", "k"), _DEFAULT),
    Case("declare the default exchange", lambda c: c.exchange_declare("", "direct"), _DEFAULT),
    Case("delete the default exchange", lambda c: c.exchange_delete(""), _DEFAULT),
    Case("unbind what is not bound", lambda c: c.queue_unbind("nope", "x", "k").method.NAME, "Queue.UnbindOk"),
    Case("delete a queue that is not there", lambda c: c.queue_delete("nope").method.message_count, 0),
    Case("delete an exchange that is not there", lambda c: c.exchange_delete("nope").method.NAME, "Exchange.DeleteOk"),
    Case("publish to nowhere", lambda c: _published(c, "nope", "k"), _NO_EXCHANGE),
    Case("publish for nobody", lambda c: _published(c, "x", "nobody"), ("returned", 312, "NO_ROUTE", b"body")),
    Case("publish to an internal exchange", _internal, (CHANNEL, 403, "ACCESS_REFUSED - cannot publish to internal exchange 'internal' in vhost VHOST")),
    Case("an expiration that is no number", lambda c: _published(c, "", "q", expiration="abc"), (CHANNEL, 406, "PRECONDITION_FAILED - invalid expiration 'abc': no_integer")),
    Case("another user's id", lambda c: _published(c, "", "q", user_id="bob"), (CHANNEL, 406, "PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was 'guest'")),
    Case("another ttl", lambda c: c.queue_declare("q", arguments={"x-message-ttl": 5}), (CHANNEL, 406, f"{_OTHER} 'x-message-ttl' for {_Q}: received the value '5' of type 'signedint' but current is none")),
    Case("durable now", lambda c: c.queue_declare("q", durable=True), (CHANNEL, 406, f"{_OTHER} 'durable' for {_Q}: received 'true' but current is 'false'")),
    Case("auto-delete now", lambda c: c.queue_declare("q", auto_delete=True), (CHANNEL, 406, f"{_OTHER} 'auto_delete' for {_Q}: received 'true' but current is 'false'")),
    Case("exclusive now", lambda c: c.queue_declare("q", exclusive=True), (CHANNEL, 405, f"RESOURCE_LOCKED - cannot obtain exclusive access to locked {_Q}. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.")),
    Case("another type", lambda c: c.exchange_declare("x", "direct"), (CHANNEL, 406, f"{_OTHER} 'type' for {_X}: received 'direct' but current is 'topic'")),
    Case("another alternate", lambda c: c.exchange_declare("x", "topic", arguments={"alternate-exchange": "y"}), (CHANNEL, 406, f"{_OTHER} 'alternate-exchange' for {_X}: received the value 'y' of type 'longstr' but current is none")),
    Case("a type that is not known", lambda c: c.exchange_declare("new", "funky"), (CHANNEL, 406, "PRECONDITION_FAILED - unknown exchange type 'funky'"), (CONNECTION, 503, "COMMAND_INVALID - unknown exchange type 'funky'")),
    Case("a reserved exchange", lambda c: c.exchange_declare("amq.new", "topic"), (CHANNEL, 403, "ACCESS_REFUSED - exchange name 'amq.new' contains reserved prefix 'amq.*'")),
    Case("a reserved queue", lambda c: c.queue_declare("amq.new"), (CHANNEL, 403, "ACCESS_REFUSED - queue name 'amq.new' contains reserved prefix 'amq.*'")),
    Case("a negative ttl", lambda c: c.queue_declare("new", arguments={"x-message-ttl": -5}), (CHANNEL, 406, f"{_NONSENSE} 'x-message-ttl' for queue 'new' in vhost VHOST: {{value_negative,-5}}")),
    Case("a ttl that is no number", lambda c: c.queue_declare("new", arguments={"x-message-ttl": "5"}), (CHANNEL, 406, f"{_NONSENSE} 'x-message-ttl' for queue 'new' in vhost VHOST: \"expected integer, got longstr\"")),
    Case("an overflow that is none", lambda c: c.queue_declare("new", arguments={"x-overflow": "5"}), (CHANNEL, 406, f"{_NONSENSE} 'x-overflow' for queue 'new' in vhost VHOST: invalid_overflow")),
    Case("a transient quorum queue", lambda c: c.queue_declare("new", arguments={"x-queue-type": "quorum"}), (CHANNEL, 406, "PRECONDITION_FAILED - invalid property 'non-durable' for queue 'new' in vhost VHOST")),
    Case("delete a system exchange", lambda c: c.exchange_delete("amq.topic"), (CHANNEL, 403, "ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost VHOST not allowed")),
    Case("delete a queue in use", _in_use, (CHANNEL, 406, f"PRECONDITION_FAILED - {_Q} in use")),
    Case("delete a queue that is not empty", lambda c: _holding(c, b"1", queue="full").queue_delete("full", if_empty=True), (CHANNEL, 406, "PRECONDITION_FAILED - queue 'full' in vhost VHOST not empty")),
    Case("delete with messages", lambda c: _holding(c, b"1", b"2", queue="two").queue_delete("two").method.message_count, 2),
    Case("an exclusive consumer", _consumed_alone, (CHANNEL, 403, f"ACCESS_REFUSED - {_Q} in exclusive use")),
    Case("a consumer tag again", _reused_tag, (CONNECTION, 530, "NOT_ALLOWED - attempt to reuse consumer tag 'me'")),
    Case("an unknown delivery tag", lambda c: _closed_by(c, spec.Basic.Ack(77)), (CHANNEL, 406, "PRECONDITION_FAILED - unknown delivery tag 77")),
    Case("a prefetch by size", lambda c: c.basic_qos(prefetch_size=10), (CONNECTION, 540, "NOT_IMPLEMENTED - prefetch_size!=0 (10)")),
    Case("get from an empty queue", lambda c: _got(c, "q"), None),
    Case("give back and get again", _requeue, ((1, False, 1, b"1"), (2, False, 0, b"2"), (3, True, 0, b"1"), None, (0, 0))),
    Case("recover", _recover, ((1, False, 0, b"1"), (2, True, 0, b"1"))),
    Case("what a closed channel held", _closed_channel, ((1, True, 1, b"1"), (2, False, 0, b"2"), None)),
    Case("acknowledge all up to one", _ack_all, (4, True, 0, b"3")),
    Case("prefetch", _prefetch, (([(1, b"1"), (2, b"2")], (1, 1)), [(3, b"3")], (0, 1))),
    Case("a queue is deleted under its consumer", _cancelled_by_delete, ["me"]),
    Case("acknowledge what is left of a deleted queue", _left_of_a_deleted_queue, (0, (0, 0))),
    Case("an auto-delete queue without consumers", _auto_deleted, (CHANNEL, 404, "NOT_FOUND - no queue 'fleeting' in vhost VHOST")),
    Case("an auto-delete exchange without bindings", _auto_deleted_exchange, (CHANNEL, 404, "NOT_FOUND - no exchange 'fleeting.x' in vhost VHOST")),
    Case("bindings between exchanges", _bound, ((1, 0), 1, (0, 0))),
    Case("properties", _properties, ({"n": 1, "big": 2**40, "yes": True, "nothing": None, "list": [1, {"a": "b"}], "raw": b"\xff", "text": "ä"}, 5, 3, "x/y", "t", None)),
    Case("a large message", _large, 1_000_000),
)  # fmt: skip
