"""RabbitMQ in virtual time: the same topology that is applied to a broker, with messages that wait, expire and die."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq_classic import ClassicQueue
from delayctl.simulator.rabbitmq_consumer import Consumer
from delayctl.simulator.rabbitmq_death import deaths_from_header
from delayctl.simulator.rabbitmq_events import Event, Nacked, Published, Returned
from delayctl.simulator.rabbitmq_message import (
    BCC,
    CC,
    NO_PROPERTIES,
    Delivery,
    Headers,
    Message,
    Properties,
    Publication,
    new_delivery,
    new_message,
    note_further_keys,
)
from delayctl.simulator.rabbitmq_objects import Objects, refusal
from delayctl.simulator.rabbitmq_post import Post, Version
from delayctl.simulator.rabbitmq_queue import MessageQueue
from delayctl.simulator.rabbitmq_quorum import QuorumQueue
from delayctl.simulator.rabbitmq_ways import Ways
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Topology

__all__ = ["Broker", "Consumer", "Counts", "Delivery", "Event", "Message", "Properties", "Publication"]

_ANSWERED = "unknown delivery tag: the delivery was answered already, or no answer is awaited"


class Counts(NamedTuple):
    """How many messages a queue has: ready, with consumers, and dead-lettered but not yet confirmed by a target."""

    ready: int
    unacked: int
    leaving: int = 0


class Broker:
    """One virtual host. Nothing happens but what is asked for here, and what `clock` brings when it is moved.

    What can't be done is refused with topology.errors.Refused, and AMQP's code as a broker gives it. Consumers are called
    before the call that causes the delivery returns; what they do in turn happens after they return.
    """

    ways: ClassVar[type[Ways]] = Ways
    classic_queue: ClassVar[type[ClassicQueue]] = ClassicQueue
    quorum_queue: ClassVar[type[QuorumQueue]] = QuorumQueue

    def __init__(
        self,
        topology: Topology | Live | None = None,
        *,
        clock: VirtualClock | None = None,
        version: str = "4.3",
        log: bool = True,
    ) -> None:
        self.clock = clock or VirtualClock()
        self.version = version
        self._post = Post(self.clock, Version.of(version), self.ways(), is_logging=log)
        self._objects = Objects(self._post, self.classic_queue, self.quorum_queue)
        self._published = 0
        self._tags = 0
        if topology is not None:
            self._objects.add_all(topology)

    @property
    def log(self) -> list[tuple[int, Event]]:
        """What happened, and when; empty where no log is kept."""
        return self._post.log

    # Objects.

    def declare_exchange(self, exchange: Exchange) -> None:
        """Make an exchange; one that is there already must be the same."""
        self._objects.declare_exchange(exchange)

    def declare_queue(self, queue: Queue) -> None:
        """Make a queue; one that is there already must be the same."""
        self._objects.declare_queue(queue)

    def bind(self, binding: Binding) -> None:
        """Bind a queue or an exchange to an exchange."""
        self._objects.bind(binding)

    def unbind(self, binding: Binding) -> None:
        """Take a binding away."""
        self._objects.unbind(binding)

    def delete_exchange(self, name: str) -> None:
        """Remove an exchange with its bindings; none of that name is no error."""
        self._objects.delete_exchange(name)

    def delete_queue(self, name: str) -> int:
        """Remove a queue with its bindings and messages; says how many were ready."""
        return self._objects.delete_queue(name)

    def purge(self, name: str) -> int:
        """Throw away what is ready in a queue; says how many there were."""
        return self._queue(name).clear()

    def set_policy(self, policy: Policy, *, is_operator: bool = False) -> None:
        """Set a policy, in place of one of the same name."""
        self._objects.set_policy(policy, is_operator=is_operator)
        self._post.hand_over()

    def clear_policy(self, name: str, *, is_operator: bool = False) -> None:
        """Remove a policy."""
        self._objects.clear_policy(name, is_operator=is_operator)
        self._post.hand_over()

    # Messages in.

    def publish(
        self,
        exchange: str,
        key: str,
        body: bytes = b"",
        *,
        headers: Headers | None = None,
        properties: Properties = NO_PROPERTIES,
        mandatory: bool = False,
        on_answer: Callable[[Publication], object] | None = None,
    ) -> Publication:
        """Publish a message and answer as a broker does with confirms."""
        self._published = number = self._published + 1
        post = self._post
        way = post.ways[exchange][key]
        queue = way.entry
        if queue is not None and not headers and (properties is NO_PROPERTIES or properties.expiration is None):
            publication = way.publication
            if post.is_logging:
                post.note(Published(number, exchange, key, publication.queues))
            if not queue.offer_plain(number, exchange, key, body, properties):
                publication = self._nacked(number, publication.queues, publication.queues)
        else:
            message = new_message(number, exchange, key, body, headers, properties)
            publication = self._publish(message, mandatory=mandatory)
        if on_answer is not None:
            on_answer(publication)
        if post.due or post.letters:
            post.hand_over()
        return publication

    def _publish(self, message: Message, *, mandatory: bool) -> Publication:
        """Publish a message of any kind, anywhere."""
        self._check(message)
        post = self._post
        way = post.way_of(message)
        queues, publication = way.queues, way.publication
        if post.is_logging:
            post.note(Published(message.number, message.exchange, message.key, publication.queues))
        if len(queues) == 1:
            is_taken = queues[0].offer(message)
            return publication if is_taken else self._nacked(message.number, publication.queues, publication.queues)
        if mandatory and not queues:
            if post.is_logging:
                post.note(Returned(message.number, message.exchange, message.key))
            return Publication(is_returned=True)
        # Copies first: a queue may change the one that it is given at once.
        copies = [(queue, message.copy()) for queue in queues]
        refused = tuple(queue.name for queue, copy in copies if not queue.offer(copy))
        return self._nacked(message.number, publication.queues, refused) if refused else publication

    def _nacked(self, number: int, queues: tuple[str, ...], refused_by: tuple[str, ...]) -> Publication:
        if self._post.is_logging:
            for name in refused_by:
                self._post.note(Nacked(number, name))
        return Publication(queues, refused_by)

    def _check(self, message: Message) -> None:
        """Refuse what a broker would close the channel for; note what the headers add."""
        self._objects.check_publish(message.exchange)
        expiration = message.properties.expiration
        if expiration is not None and not (expiration.isascii() and expiration.isdecimal()):
            raise refusal(406, f"invalid expiration {expiration!r}: a number of milliseconds is written as text")
        headers = message.headers
        if not headers:
            return
        if CC in headers or BCC in headers:
            note_further_keys(message, headers)
        if "x-death" in headers and not self._post.version.is_new:
            message.deaths = deaths_from_header(headers["x-death"])

    # Messages out.

    def get(self, queue: str, *, no_ack: bool = False) -> Delivery | None:
        """Take the head of a queue, if there is one."""
        found = self._queue(queue)
        found.touch()
        delivery = found.get(no_ack=no_ack)
        self._post.hand_over()
        return delivery

    def consume(
        self,
        queue: str,
        on_delivery: Callable[[Delivery], None],
        *,
        prefetch: int = 0,
        no_ack: bool = False,
        tag: str = "",
    ) -> Consumer:
        """Call `on_delivery` with every message, as long as no more than `prefetch` of them wait for an answer."""
        self._tags += 1
        consumer = Consumer(tag or f"consumer-{self._tags}", queue, on_delivery, prefetch=prefetch, no_ack=no_ack)
        self._queue(queue).add(consumer)
        self._post.hand_over()
        return consumer

    def cancel(self, consumer: Consumer) -> None:
        """Hand out no more to a consumer; what it has not answered stays with it."""
        queue = self._objects.queues.get(consumer.queue)
        if consumer.is_cancelled or queue is None:
            return
        queue.remove(consumer)
        if queue.declared.auto_delete and not queue.consumers:
            self.delete_queue(queue.name)

    def ack(self, delivery: Delivery) -> None:
        """A consumer is done with a message."""
        if not delivery.is_open:
            raise refusal(406, _ANSWERED)
        delivery.source.ack(delivery)
        post = self._post
        if post.due or post.letters:
            post.hand_over()

    def reject(self, delivery: Delivery, *, requeue: bool) -> None:
        """A consumer refuses a message (basic.reject): for good, or to have it again."""
        self._give_back(delivery, requeue=requeue, is_failure=True)

    def nack(self, delivery: Delivery, *, requeue: bool) -> None:
        """A consumer refuses a message (basic.nack); new brokers don't count that as a failed delivery, as they do reject."""
        self._give_back(delivery, requeue=requeue, is_failure=False)

    def _give_back(self, delivery: Delivery, *, requeue: bool, is_failure: bool) -> None:
        if not delivery.is_open:
            raise refusal(406, _ANSWERED)
        queue = delivery.source
        if requeue:
            queue.requeue(delivery, is_failure=is_failure)
        else:
            queue.discard(delivery, is_failure=is_failure)
        self._post.hand_over()

    # Looking.

    def count(self, queue: str) -> Counts:
        """How many messages a queue has."""
        found = self._queue(queue)
        return Counts(len(found), found.unacked, found.leaving)

    def peek(self, queue: str) -> tuple[Delivery, ...]:
        """What is ready in a queue, the head first, as a consumer would see it; nothing is taken."""
        found = self._queue(queue)
        return tuple(new_delivery(message.snapshot(), found, None) for message in found.messages())

    def _queue(self, name: str) -> MessageQueue:
        return self._objects.queue(name)
