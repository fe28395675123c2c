"""The virtual host behind all connections: the model, and what belongs to connections rather than to it."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field

from delayctl.simulator.rabbitmq import Broker
from delayctl.simulator.rabbitmq_message import Delivery
from delayctl.simulator.rabbitmq_queue import Consumer, MessageQueue
from delayctl.testing.faults import Faults
from delayctl.testing.refusals import (
    ACCESS_REFUSED,
    COMMAND_INVALID,
    NOT_FOUND,
    PRECONDITION_FAILED,
    RESOURCE_LOCKED,
    ChannelRefusal,
    ConnectionRefusal,
    Refusal,
)
from delayctl.testing.returns import Returns
from delayctl.testing.session import Session
from delayctl.testing.turns import Push, Turns
from delayctl.topology.model import Binding, Exchange


@dataclass(eq=False)
class Seat:
    """A consumer of a queue, and how it is told that the queue is gone."""

    session: Session
    queue: str
    tag: str
    cancelled: Callable[["Seat"], None]
    is_exclusive: bool = False
    consumer: Consumer | None = None
    pushes: dict[Push, None] = field(default_factory=dict)  # Not sent yet.


class Host:
    """One virtual host; used with the lock held."""

    def __init__(
        self, model: Broker, vhost: str, login: tuple[str, str], turns: Turns, *, returns: Returns, version: str
    ) -> None:
        self.model = model
        self.vhost = vhost
        self.version = version
        self.turns = turns
        self.faults = Faults()
        self.sessions: list[Session] = []
        self.acked = 0  # How many messages consumers are done with.
        self.returns = returns
        self.seats: list[Seat] = []
        self.owners: dict[str, Session] = {}  # Of exclusive queues.
        self._login = login
        self._named = 0

    def lets_in(self, username: str, password: str) -> bool:
        """Whether somebody may come in."""
        return (username, password) == self._login

    def left(self, session: Session) -> None:
        """A connection has ended, and its exclusive queues with it."""
        self.sessions.remove(session)
        for name in [name for name, owner in self.owners.items() if owner is session]:
            self.delete_queue(name)

    def new_name(self, prefix: str) -> str:
        """A name that nothing else has; the same in every run."""
        self._named += 1
        return f"{prefix}{self._named:06}"

    # What is there.

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges by name."""
        return self.model._objects._exchanges

    @property
    def queues(self) -> Mapping[str, MessageQueue]:
        """The queues by name."""
        return self.model._objects.queues

    @property
    def bindings(self) -> Set[Binding]:
        """The bindings."""
        return self.model._objects._bindings

    def unknown_type(self, kind: str) -> Refusal:
        """The refusal of an exchange of a type that is not known."""
        text = f"unknown exchange type '{kind}'"
        if self.version.startswith("3."):
            return ConnectionRefusal(COMMAND_INVALID, text)
        return ChannelRefusal(PRECONDITION_FAILED, text)

    # Publishing.

    def may_publish(self, exchange: str) -> None:
        """Refuse an exchange that is not there, or not for publishers."""
        found = self.exchanges.get(exchange)
        if found is None:
            raise self.missing("exchange", exchange)
        if found.internal:
            raise ChannelRefusal(
                ACCESS_REFUSED, f"cannot publish to internal exchange '{exchange}' in vhost '{self.vhost}'"
            )

    def begin_publish(self, session: Session) -> None:
        """A connection has begun to publish; where there is a block, the rest is not read before it ends."""
        if self.faults.blocked_for is not None:
            session.block(self.faults.blocked_for)

    # Queues.

    def missing(self, kind: str, name: str) -> ChannelRefusal:
        """The refusal of something that is not there."""
        return ChannelRefusal(NOT_FOUND, f"no {kind} '{name}' in vhost '{self.vhost}'")

    def may_use(self, session: Session, queue: str) -> str:
        """Refuse a queue that is not there, or is another connection's alone; gives its name back."""
        if queue not in self.queues:
            raise self.missing("queue", queue)
        self.check_owner(session, queue, self.owners.get(queue))
        return queue

    def check_owner(self, session: Session, queue: str, owner: Session | None) -> None:
        """Refuse an exclusive queue to all but its owner."""
        if owner not in (None, session):
            raise self.locked(queue)

    def locked(self, queue: str) -> ChannelRefusal:
        """The refusal of a queue that is another connection's alone, or that can't become this one's."""
        return ChannelRefusal(
            RESOURCE_LOCKED,
            f"cannot obtain exclusive access to locked queue '{queue}' in vhost '{self.vhost}'. It could be "
            "originally declared on another connection or the exclusive property value does not match that of the "
            "original declaration.",
        )

    def delete_queue(self, name: str) -> int:
        """Delete a queue; its consumers are told. Says how many messages went with it."""
        count = self.model.delete_queue(name)
        self.owners.pop(name, None)
        self.forget_consumers()
        return count

    # Consumers.

    def ack(self, delivery: Delivery) -> None:
        """A consumer is done with a message."""
        self.acked += 1
        self.model.ack(delivery)

    def nack(self, delivery: Delivery, *, requeue: bool) -> None:
        """A consumer refuses a message."""
        self._note_return(delivery, requeue=requeue)
        self.model.nack(delivery, requeue=requeue)

    def reject(self, delivery: Delivery, *, requeue: bool) -> None:
        """A consumer refuses a message, which counts as a failure."""
        self._note_return(delivery, requeue=requeue)
        self.model.reject(delivery, requeue=requeue)

    def _note_return(self, delivery: Delivery, *, requeue: bool) -> None:
        if requeue:
            self.returns.note(delivery)

    def seat(
        self, session: Session, queue: str, tag: str, cancelled: Callable[[Seat], None], *, exclusive: bool
    ) -> Seat:
        """Reserve a consumer's place, or refuse it."""
        self.may_use(session, queue)
        others = [seat for seat in self.seats if seat.queue == queue]
        if any(seat.is_exclusive for seat in others) or (exclusive and others):
            raise ChannelRefusal(ACCESS_REFUSED, f"queue '{queue}' in vhost '{self.vhost}' in exclusive use")
        return Seat(session, queue, tag, cancelled, exclusive)

    def take_seat(self, seat: Seat, on_delivery: Callable[[Delivery], None], *, prefetch: int, no_ack: bool) -> None:
        """Begin to consume."""
        self.seats.append(seat)
        seat.consumer = self.model.consume(seat.queue, on_delivery, prefetch=prefetch, no_ack=no_ack, tag=seat.tag)

    def vacate(self, seat: Seat) -> None:
        """Stop consuming; what was handed out stays with the consumer."""
        self.seats.remove(seat)
        if seat.consumer is not None:
            self.model.cancel(seat.consumer)

    def forget_consumers(self) -> None:
        """Tell the consumers of queues that are gone."""
        for seat in [seat for seat in self.seats if seat.queue not in self.queues]:
            self.seats.remove(seat)
            seat.cancelled(seat)
