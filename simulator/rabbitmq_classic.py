"""A classic queue."""

from typing import TYPE_CHECKING

from delayctl.simulator.rabbitmq_events import Dropped
from delayctl.simulator.rabbitmq_message import NO_PROPERTIES, Delivery, Message, Properties
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
        if self.waiting or not self._takes_plain:
            return super().offer_plain(number, exchange, key, body, properties)
        ready, ttl = self.ready, self.ttl
        expires = None if ttl is None else self.clock.now + ttl
        ready.append((expires, number, exchange, key, body, None if properties is NO_PROPERTIES else properties))
        is_cut = len(ready) + len(self.returned) > self.most and self.limit()
        if is_cut or (ttl is not None and len(ready) == 1 and not self.returned):
            self.expire()
        return True

    def put(self, message: Message) -> None:
        """Take a dead-lettered message; where it is refused, nobody hears of it."""
        if not self._refuses:
            if self._admit(message):
                self.expire()
        elif not self.offer(message) and self.post.is_logging:
            self.post.note(Dropped(message.number, self.name, "full"))

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
