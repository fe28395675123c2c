"""A script on the simulated broker, and what is seen of it: the account that a live broker is held to."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from delayctl.simulator.rabbitmq import Broker, Delivery, Properties, Publication
from delayctl.simulator.rabbitmq_classic import ClassicQueue
from delayctl.simulator.rabbitmq_message import Message
from delayctl.simulator.rabbitmq_post import Post
from delayctl.simulator.rabbitmq_queue import MessageQueue
from delayctl.simulator.rabbitmq_quorum import QuorumQueue
from delayctl.simulator.rabbitmq_ways import Way, Ways
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.live import Live
from delayctl.topology.model import Queue
from delayctl.topology.routing import Routed

from tests.support.scripts import GETS, PHASE, UNIT, Action, Answer, Consume, Get, Publish, Purge, Script

STUCK = 60_000  # What is tried again after such a time is stuck.
LONG = 4_000  # What moves for longer does so for ever.
HEARD_AFTER = 50  # So long it may take until one queue knows of another that it is full, on a busy machine.

Pauses = Sequence[Sequence[int]]  # How long every action of every phase took; and then, how late the next phase came.
Seen = tuple[str, str, str, bool, Any]  # Body, exchange, key, whether it is redelivered, headers.


@dataclass
class Account:
    """All that can be seen of a script: answers in order, what each consumer got, and what is left in the queues."""

    answers: list[object] = field(default_factory=list)
    deliveries: dict[int, list[Seen]] = field(default_factory=dict)
    left: dict[str, list[Seen]] = field(default_factory=dict)
    is_restless: bool = False
    trace: list[dict[str, int]] = field(default_factory=list, compare=False)  # How many were ready after each action.


def without_times(headers: Mapping[str, Any] | None) -> Any:
    """Headers as they are compared: all but when a message died."""
    plain = dict(headers or {})
    if isinstance(plain.get("x-death"), list):
        plain["x-death"] = [
            {name: value for name, value in death.items() if name != "time"} for death in plain["x-death"]
        ]
    return plain


def body_of(number: int, publish: Publish) -> bytes:
    """A body that tells messages apart."""
    return f"{number}".rjust(max(publish.body_size, 2)).encode()


@dataclass
class Performance:
    """One run of a script on the model."""

    script: Script
    broker: Broker
    account: Account = field(default_factory=Account)
    _open: dict[int, deque[Delivery]] = field(default_factory=lambda: defaultdict(deque))
    _published: int = 0
    _consumers: int = 0

    def play(self, pauses: Pauses, *, is_last_ended: bool) -> None:
        """Do as much as there are pauses."""
        for number, lasting in enumerate(pauses):
            began, actions = self.broker.clock.now, self.script.phases[number]
            for action, pause in zip(actions, lasting, strict=False):
                self.act(action)
                self.account.trace.append(self.counts)
                self.broker.clock.advance(pause)
            if is_last_ended or number < len(pauses) - 1:
                self.end_phase(began, rests=self.script.rests[number])
                self.broker.clock.advance(sum(lasting[len(actions) :]))

    def act(self, action: Action) -> None:
        """Do one thing."""
        match action:
            case Publish():
                self.account.answers.append(self._publish(action))
            case Get(queue):
                delivery = self.broker.get(queue)
                self.account.answers.append(None if delivery is None else _seen(delivery))
                self._open[GETS].extend(() if delivery is None else (delivery,))
            case Consume():
                self._consume(action)
            case Answer(consumer, how):
                if (waiting := first_open(self._open, consumer)) is not None:
                    self._answer(waiting.popleft(), how)
            case Purge(queue):
                self.account.answers.append(self.broker.purge(queue))

    def _publish(self, action: Publish) -> str:
        self._published += 1
        message = action.message
        publication = self.broker.publish(
            action.exchange,
            message.key,
            body_of(self._published, action),
            headers=message.headers or None,
            properties=Properties(expiration=action.expiration),
            mandatory=True,
        )
        return verdict(publication)

    def _consume(self, action: Consume) -> None:
        number = self._consumers
        self._consumers += 1
        self.account.deliveries[number] = []

        def take(delivery: Delivery) -> None:
            self.account.deliveries[number].append(_seen(delivery))
            if not action.no_ack:
                self._open[number].append(delivery)

        self.broker.consume(action.queue, take, prefetch=action.prefetch, no_ack=action.no_ack)

    def _answer(self, delivery: Delivery, how: str) -> None:
        match how:
            case "ack":
                self.broker.ack(delivery)
            case "reject" | "requeue":
                self.broker.reject(delivery, requeue=how == "requeue")
            case _:
                self.broker.nack(delivery, requeue=how == "nack-requeue")

    def end_phase(self, began: int, *, rests: bool) -> None:
        """Let the time of a phase pass; or all time, until nothing moves."""
        clock = self.broker.clock
        clock.run_until(began + PHASE)
        while rests and clock.next_time is not None and clock.next_time < began + STUCK:
            if clock.next_time > began + LONG:
                self.account.is_restless = True
                return
            clock.run_until(clock.next_time)

    @property
    def counts(self) -> dict[str, int]:
        """How many messages are ready."""
        return {queue: self.broker.count(queue).ready for queue in self.script.live.queues}

    def finish(self) -> Account:
        """Take what is left."""
        for queue in self.script.live.queues:
            self.drain(queue)
        return self.account

    def drain(self, queue: str) -> None:
        """Take what is left in a queue."""
        self.account.left[queue] = []
        while (delivery := self.broker.get(queue, no_ack=True)) is not None:
            self.account.left[queue].append(_seen(delivery))


T = TypeVar("T")


def first_open(open_deliveries: Mapping[int, deque[T]], consumer: int) -> deque[T] | None:
    """What a consumer has not answered; where that is nothing, the same of the next one."""
    found = sorted(number for number, waiting in open_deliveries.items() if waiting)
    return open_deliveries[next((n for n in found if n >= consumer), found[0])] if found else None


def verdict(publication: Publication) -> str:
    """A publisher's answer in one word."""
    if publication.is_returned:
        return "returned"
    return "confirmed" if publication.is_confirmed else "nacked"


def _seen(delivery: Delivery) -> Seen:
    return (
        delivery.body.decode(),
        delivery.exchange,
        delivery.key,
        delivery.redelivered,
        without_times(delivery.headers),
    )


class _BackwardsWays(Ways):
    def _way(self, routed: Routed) -> Way:
        return super()._way(Routed(routed.queues[::-1], routed.hops))


class Backwards(Broker):
    """A broker that sends to the last of several queues first."""

    ways = _BackwardsWays


class _FarQueue(QuorumQueue):
    """Tells other queues, which do not wait for an answer, a little later whether it is full."""

    def __init__(self, declared: Queue, post: Post) -> None:
        self._told: list[tuple[int, dict[str, bool]]] = []
        super().__init__(declared, post)

    def offer(self, message: Message, publisher: str = "") -> bool:
        if not publisher or publisher not in self.is_closed or not self._told:
            return super().offer(message, publisher)
        if self._heard_by(publisher):
            return False
        self.put(message)
        return True

    def _heard_by(self, publisher: str) -> bool:
        long_ago = [told for at, told in self._told if at <= self.clock.now - HEARD_AFTER]
        return (long_ago[-1] if long_ago else {}).get(publisher, False)

    def _tell_publishers(self) -> None:
        super()._tell_publishers()
        self._told.append((self.clock.now, self.is_closed))

    def _reopen(self) -> None:
        super()._reopen()
        self._told.append((self.clock.now, self.is_closed))


class _HastyQueue(MessageQueue):
    """Brings at once where it belongs what leaves it."""

    def offer(self, message: Message, publisher: str = "") -> bool:
        is_taken = super().offer(message, publisher)
        self.post.hand_over()
        return is_taken


class _HastyClassic(_HastyQueue, ClassicQueue):
    pass


class _HastyQuorum(_HastyQueue, QuorumQueue):
    pass


class Hasty(Backwards):
    """A broker in which what leaves one queue may arrive before what was sent to several at once has got to all of them."""

    classic_queue, quorum_queue = _HastyClassic, _HastyQuorum


class HearsLate(Broker):
    """A broker whose queues go on for a while to send dead letters to one that is full."""

    quorum_queue = _FarQueue


def foretold(script: Script, version: str) -> Account | None:
    """What the model says of a script; None where that hangs on which of two things comes first, or nothing rests."""
    slow = UNIT // 2 // max(map(len, script.phases))
    live = script.live
    runs = (
        (Broker(live, version=version), 0),
        (Backwards(live, version=version), slow),
        (Broker(_skewed(live, 1), version=version), 1),
        (Broker(_skewed(live, -1), version=version), slow),
        (Hasty(live, version=version), 0),
        (HearsLate(live, version=version), 0),
    )
    try:
        first, *others = (performed(script, broker, _even(script, pause)) for broker, pause in runs)
    except DelayctlError:
        return None  # A message goes round for ever, and no time passes.
    is_clear = all(account == first and account.trace == first.trace for account in others)
    return first if is_clear and not first.is_restless else None


def _even(script: Script, pause: int) -> Pauses:
    return [[pause] * len(actions) for actions in script.phases]


def _skewed(live: Live, direction: int) -> Live:
    """The same with expiries that are late by a little, in each queue by a little more or less than in the others."""
    late = {name: 5 + 10 * number for number, name in enumerate(sorted(live.queues)[::direction])}
    queues = {
        name: replace(queue, settings=replace(queue.settings, ttl=Duration(queue.settings.ttl.ms + late[name])))
        if queue.settings.ttl
        else queue
        for name, queue in live.queues.items()
    }
    return replace(live, queues=queues)


def performed(script: Script, broker: Broker, pauses: Pauses) -> Account:
    """The account of a whole script on the model."""
    performance = Performance(script, broker)
    performance.play(pauses, is_last_ended=True)
    performance.end_phase(broker.clock.now, rests=True)
    return performance.finish()


def standing(script: Script, broker: Broker, pauses: Pauses, *, is_last_ended: bool) -> tuple[Account, dict[str, int]]:
    """How things stand on the model after as much of a script as there are pauses."""
    performance = Performance(script, broker)
    performance.play(pauses, is_last_ended=is_last_ended)
    return performance.account, performance.counts
