"""Between the queues: routes, dead letters, what is due to consumers, and the log of it all."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq_death import Death, Keys, Reason, death_headers, died, is_circle
from delayctl.simulator.rabbitmq_events import DeadLettered, Dropped, Event
from delayctl.simulator.rabbitmq_message import (
    BCC,
    CC,
    Delivery,
    Headers,
    Kept,
    Message,
    Plain,
    unpacked,
)
from delayctl.simulator.rabbitmq_queue import MessageQueue
from delayctl.simulator.rabbitmq_ways import Way, Ways
from delayctl.topology.errors import DelayctlError

MAX_DEPTH = 100  # Deaths at one time that led to each other: more of them never end.
MAX_CARRIED = 10_000  # Besides a hundred for each that it began with: they may also multiply.


def _keep(queue: MessageQueue) -> None:
    """What is done about an idle queue as long as nobody says otherwise."""
    del queue


@dataclass(frozen=True, slots=True)
class Version:
    """Which broker is imitated: the old ones were compared with 3.10.8, the new ones with 4.3.6."""

    is_new: bool

    @classmethod
    def of(cls, text: str) -> "Version":
        """Read a version, such as 3.10 or 4.3.6."""
        major = text.partition(".")[0]
        if not major.isdecimal():
            raise ValueError(f"{text!r} is not a version: write one such as 3.10 or 4.3")
        return cls(int(major) >= 4)


class Post:
    """Carries messages from exchanges to queues and from queues to consumers."""

    def __init__(self, clock: VirtualClock, version: Version, ways: Ways, *, is_logging: bool) -> None:
        self.clock = clock
        self.version = version
        self.is_logging = is_logging
        self.log: list[tuple[int, Event]] = []
        self.ways = ways
        self.due: deque[Delivery] = deque()
        self.on_idle: Callable[[MessageQueue], None] = _keep
        self.letters: list[tuple[MessageQueue, Kept]] = []  # On the way from a queue that let go of them to another.
        self._is_handing_over = False

    def note(self, event: Event) -> None:
        """Write down what happens."""
        self.log.append((self.clock.now, event))

    def hand_over(self) -> None:
        """Bring dead letters to their queues, and call the consumers that have something due with all that they cause."""
        letters = self.letters
        if letters:
            if len(letters) == 1:  # As mostly, and then there is less to do.
                target, message = letters.pop()
                target.put(message)
            if letters:
                self._carry()
        if self._is_handing_over:
            return
        self._is_handing_over = True
        due = self.due
        try:
            while due:
                delivery = due.popleft()
                consumer = delivery.consumer
                if consumer is not None:
                    consumer.on_delivery(delivery)
        finally:
            self._is_handing_over = False

    def _carry(self) -> None:
        """Bring letters to their queues, then those that came of them: a queue has done its work before it sees what comes of it."""
        most = MAX_CARRIED + MAX_DEPTH * len(self.letters)
        for _ in range(MAX_DEPTH):
            letters, self.letters = self.letters, []
            for target, message in letters:
                target.put(message)
            if not self.letters:
                return
            most -= len(letters)
            if most < 0:
                break
        self._give_up()

    def way_of(self, message: Message) -> Way:
        """Where an exchange leads a message."""
        way = self.ways[message.exchange][message.key]
        if not message.further and not way.sees_headers:
            return way
        headers = self.routing_headers(message)
        return self.ways.find_by_headers(message.exchange, message.key, headers, message.properties.message_id)

    def routing_headers(self, message: Message) -> Headers:
        """The headers as exchanges look at them: further keys are where they look for them."""
        headers = self.headers_of(message)
        headers.pop(CC, None)
        return headers | {BCC: message.further} if message.further else headers

    def dead_letter(self, message: Message, queue: MessageQueue, reason: Reason) -> None:
        """Send a message that left a queue to the queue's dead-letter exchange."""
        if queue.exit is None:
            if self.is_logging:
                self.note(Dropped(message.number, queue.name, reason))
            return
        self.record_death(message, queue, reason)
        targets = self.targets(message)
        if self.is_logging:
            self.note_dead_lettered(message, queue.name, reason, targets)
        if len(targets) == 1:
            self.letters.append((targets[0], message))
        else:
            self.letters += [(target, message.copy()) for target in targets]

    def dead_letter_plain(self, plain: Plain, queue: MessageQueue, reason: Reason) -> None:
        """The same for what is kept small; where it goes on from its first queue to one alone, there is little to look at."""
        _, number, exchange, key, body, properties, deaths = plain
        exit, exit_key = queue.exit, key if queue.exit_key is None else queue.exit_key
        target = None if exit is None else self.ways[exit][exit_key].queue
        if exit is None or target is None or target is queue or deaths:
            self.dead_letter(unpacked(plain), queue, reason)
            return
        clock = self.clock
        death: Death = (queue.name, reason, exchange, key, clock.now + clock.ahead, None, 1)
        letter: Plain = (None, number, exit, exit_key, body, properties, (death,))
        if self.is_logging:
            self.note_dead_lettered(unpacked(letter), queue.name, reason, (target,))
        self.letters.append((target, letter))

    def _give_up(self) -> NoReturn:
        target, letter = self.letters[0]
        message = unpacked(letter)
        self.letters.clear()
        raise DelayctlError(
            f"message {message.number} goes round for ever in no time: it comes to queue {target.name!r} once more",
            fix="give a queue on its way a time to live, or lead one of the dead-letter exchanges elsewhere",
        )

    def record_death(self, message: Message, queue: MessageQueue, reason: Reason) -> None:
        """Write a death into a message, and address it to the dead-letter exchange."""
        expiration = message.properties.expiration
        keys = self._seen_keys(message) if message.further else message.key
        death: Death = (queue.name, reason, message.exchange, keys, self.clock.wall, expiration, 1)
        if message.deaths:
            message.deaths, message.ends = died(message.deaths, message.ends, death, is_new_style=self.version.is_new)
        else:
            message.deaths = (death,)
        if expiration is not None:
            message.properties = message.properties.without_expiration()
        assert queue.exit is not None
        message.exchange = queue.exit
        message.expires = None
        message.place = message.returns = 0
        if not self.version.is_new:
            message.failures = 0  # New brokers remember that a consumer failed with it, in whatever queue.
        if queue.exit_key is not None:
            self._readdress(message, queue.exit_key)

    def _seen_keys(self, message: Message) -> Keys:
        """The keys that x-death tells of: not those of BCC."""
        keys = [message.key, *message.further]
        if not self.version.is_new:
            return tuple(keys[: len(keys) - len(message.bcc)])
        for key in message.bcc:
            if key in keys:
                keys.remove(key)
        return tuple(keys)

    def _readdress(self, message: Message, key: str) -> None:
        message.key, message.further = key, ()
        if not self.version.is_new:
            message.bcc = ()
            if message.headers and CC in message.headers:
                message.headers = {name: value for name, value in message.headers.items() if name != CC}

    def targets(self, message: Message) -> tuple[MessageQueue, ...]:
        """The queues that a dead-lettered message goes to: not to one where it would go in a circle."""
        way = self.ways[message.exchange][message.key]
        if way.sees_headers or message.further:
            way = self.way_of(message)
        queues = way.queues
        for queue in queues:
            if is_circle(message.deaths, queue.name):
                return self._without_circles(message, queues)
        return queues

    def _without_circles(self, message: Message, queues: tuple[MessageQueue, ...]) -> tuple[MessageQueue, ...]:
        kept = tuple(queue for queue in queues if not is_circle(message.deaths, queue.name))
        if self.is_logging:
            for queue in queues:
                if queue not in kept:
                    self.note(Dropped(message.number, queue.name, "circle"))
        return kept

    def note_dead_lettered(
        self, message: Message, queue: str, reason: Reason, targets: tuple[MessageQueue, ...]
    ) -> None:
        """Write down where a dead letter goes."""
        if self.is_logging:
            names = tuple(target.name for target in targets)
            self.note(DeadLettered(message.number, queue, reason, message.exchange, message.key, names))

    def headers_of(self, message: Message) -> dict[str, object]:
        """The headers that a message carries, those of its deaths included."""
        headers = dict(message.headers or {})
        if message.deaths:
            told = death_headers(message.deaths, message.ends, is_new_style=self.version.is_new)
            # Where a publisher sent an x-death that counts, its word on the first death stands.
            is_kept = "x-death" in headers and not self.version.is_new
            headers |= {"x-death": told["x-death"]} if is_kept else told
        return headers
