"""A classic queue."""

from typing import TYPE_CHECKING

from delayctl.simulator.rabbitmq_death import Death
from delayctl.simulator.rabbitmq_events import DeadLettered, Dropped
from delayctl.simulator.rabbitmq_message import NO_PROPERTIES, Delivery, Kept, Message, Properties, unpacked
from delayctl.simulator.rabbitmq_queue import NO_LIMIT, MessageQueue
from delayctl.topology.model import Queue, Settings

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_post import Post


class ClassicQueue(MessageQueue):
    """Hands a message straight to a consumer that waits, and puts one that comes back into its old place."""

    def __init__(self, declared: Queue, post: "Post") -> None:
        super().__init__(declared, post)
        self._is_forgetful = True
        self._drops_head = False
        self._refuses = False
        self._takes_plain = True

    def configure(self, settings: Settings) -> None:
        """Take over the settings in force, and let go at once of what is too much now."""
        super().configure(settings)
        # A queue forgets a policy's overflow only with the next one that has a word for it.
        self.overflow = settings.overflow or self.overflow
        self._drops_head = self.is_limited and self.overflow == "drop-head"
        self._refuses = self.is_limited and not self._drops_head
        self._takes_plain = not self._refuses and self.max_bytes is None
        self.most = NO_LIMIT
        if self._drops_head:
            # With a limit of bytes every message has to be looked at.
            self.most = -1 if self.max_bytes is not None or self.max_length is None else self.max_length
        if self._drops_head:
            self.limit()
        self.run()

    def offer(self, message: Message, publisher: str = "") -> bool:  # noqa: ARG002 (all publishers are equal here)
        """Take a message in, unless the queue is full and its overflow is a kind of reject-publish."""
        if self._refuses and self._would_overflow(message):
            if self.overflow == "reject-publish-dlx":
                self.bury(message, "maxlen")
            return False
        if self._admit(message):
            self.expire()
        return True

    def offer_plain(self, number: int, exchange: str, key: str, body: bytes, properties: Properties) -> bool:
        """The same for what was published without headers and expiration; what has to wait is kept small."""
        if self.waiting or self.returned or not self._takes_plain:
            return super().offer_plain(number, exchange, key, body, properties)
        ready, ttl = self.ready, self.ttl
        expires = None if ttl is None else self.clock.now + ttl
        ready.append((expires, number, exchange, key, body, None if properties is NO_PROPERTIES else properties, ()))
        if not 1 < len(ready) <= self.most:
            self._settle()
        return True

    def put(self, letter: Kept) -> None:
        """Take a dead-lettered message; where it is refused, nobody hears of it."""
        if isinstance(letter, tuple) and self._takes_plain:
            if self.ttl is not None:
                letter = (self.clock.now + self.ttl, *letter[1:])
            consumer = self._next_consumer() if self.waiting and not self.ready and not self.returned else None
            if consumer is not None:
                self._deliver(letter, consumer)
            else:
                self.ready.append(letter)
                self._settle()
            return
        message = unpacked(letter)
        if not self._refuses:
            if self._admit(message):
                self.expire()
        elif not self.offer(message) and self.post.is_logging:
            self.post.note(Dropped(message.number, self.name, "full"))

    def _wake(self) -> None:
        if not self._passes_on():
            super()._wake()

    def _passes_on(self) -> bool:
        """Do all that is to be done at a time at which nothing but one plain message is due, for one other queue; says whether it is.

        That is so nearly always. It is what `expire`, `dead_letter_plain` and `hand_over` do, written out: that saves a tenth of
        the time of a message.
        """
        ready, post, exit = self.ready, self.post, self.exit
        if exit is None or self.waiting or self.returned or post.letters or len(ready) < 2 or not self._takes_plain:
            return False
        head, after = ready[0], ready[1]
        if not (isinstance(head, tuple) and isinstance(after, tuple)):
            return False
        due, number, exchange, key, body, properties, deaths = head
        exit_key = key if self.exit_key is None else self.exit_key
        target, clock, then = post.ways[exit][exit_key].queue, self.clock, after[0]
        now = clock.now
        if deaths or target is None or target is self or due is None or due > now or then is None or then <= now:
            return False
        ready.popleft()
        clock.plan(self._alarm, then)
        death: Death = (self.name, "expired", exchange, key, now + clock.ahead, None, 1)
        if post.is_logging:
            post.note(DeadLettered(number, self.name, "expired", exit, exit_key, (target.name,)))
        target.put((None, number, exit, exit_key, body, properties, (death,)))
        if post.due or post.letters:
            post.hand_over()
        return True

    def _settle(self) -> None:
        """One more is in the queue: let go of what is too much, and wait for a head that is new."""
        is_cut = len(self) > self.most and self.limit()
        if is_cut or (self.ttl is not None and len(self) == 1):
            self.expire()

    def _would_overflow(self, message: Message) -> bool:
        if self.max_length is not None and len(self) >= self.max_length:
            return True
        return self.max_bytes is not None and self.bytes + self.size(message) > self.max_bytes

    def requeue(self, delivery: Delivery, *, is_failure: bool) -> None:
        """Put it back where it was."""
        message = delivery.message.back(is_failure=is_failure)
        self._note_requeued(message)
        self._put_back(message)
        self._release(delivery)
        if self._drops_head:
            self.limit()
        self.run()
