"""A quorum queue."""

import itertools
from typing import TYPE_CHECKING

from delayctl.simulator.rabbitmq_asleep import Asleep
from delayctl.simulator.rabbitmq_consumer import Consumer
from delayctl.simulator.rabbitmq_death import Reason
from delayctl.simulator.rabbitmq_forwarder import Forwarder
from delayctl.simulator.rabbitmq_message import Delivery, Kept, Message, expiry_of, unpacked
from delayctl.simulator.rabbitmq_queue import MessageQueue
from delayctl.simulator.rabbitmq_size import properties_size
from delayctl.topology.journey import is_at_least_once
from delayctl.topology.model import Queue, Settings

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_post import Post

DELIVERY_LIMIT = 20  # Where nothing else is said, on new brokers.
_REOPENS_AT = 0.8  # A full queue takes messages again when no more than this share of the limit is left.


class QuorumQueue(MessageQueue):
    """Counts returns, and refuses only publishers that were told that it is full."""

    delivery_limit: int | None = None
    forwarder: Forwarder | None = None
    is_closed: dict[str, bool]  # By publisher: whether it was told that the queue is full.

    def __init__(self, declared: Queue, post: "Post") -> None:
        super().__init__(declared, post)
        self._asleep = Asleep(post.clock, self._wake_up)

    @property
    def leaving(self) -> int:
        """How many were dead-lettered and wait for a target's confirm."""
        return len(self.forwarder) if self.forwarder else 0

    @property
    def _all_bytes(self) -> int:
        return self.bytes + (self.forwarder.bytes if self.forwarder else 0)

    def configure(self, settings: Settings) -> None:
        """Take over the settings in force."""
        super().configure(settings)
        self.is_closed = getattr(self, "is_closed", {})
        self.overflow = "reject-publish" if settings.overflow == "reject-publish" else "drop-head"
        if is_at_least_once(settings) and settings.dead_letter_exchange is not None:
            self.forwarder = self.forwarder or Forwarder(self)
            self.forwarder.retry()
        if self.post.version.is_new:  # Others take the arguments, and let nothing wait.
            self._asleep.configure(settings)
        limit = settings.delivery_limit
        if limit is None and self.post.version.is_new:
            limit = DELIVERY_LIMIT
        self.delivery_limit = None if limit is None or limit < 0 else limit
        self._keeps = is_at_least_once(settings) and self.forwarder is not None
        self._after_change()
        self.run()

    def size(self, message: Message) -> int:
        """How much of max-length-bytes a message takes: on new brokers its properties count."""
        return len(message.body) + (properties_size(message) if self.post.version.is_new else 0)

    def offer(self, message: Message, publisher: str = "") -> bool:
        """Take a message in, unless this publisher knows that the queue is full."""
        if self.overflow == "reject-publish" and self.is_limited:
            if publisher not in self.is_closed:
                self.is_closed[publisher] = self._is_over()
            if self.is_closed[publisher]:
                return False
        self.put(message)
        return True

    def put(self, letter: Kept) -> None:
        """Take a message in, full or not."""
        may_expire = self._admit(unpacked(letter))
        # What is to live no time at all does not expire before limits have had their say.
        if self.is_limited:
            self._after_change()
        if may_expire or self.returned:
            self.expire()

    def expire(self) -> None:
        """Let go what is due: on old brokers in front of all, on new ones also in front of what never came back."""
        if self.returned and self.post.version.is_new:
            self._expire_both()
        else:
            super().expire()
        # Only now: what has expired and can't leave takes room as before.
        if self.is_closed:
            self._tell_publishers()

    def _expire_both(self) -> None:
        now = self.clock.now
        while self.returned and _is_due(self.returned[0][1], now):
            self.bury(unpacked(self._take()), "expired")
        while self.ready and _is_due(self.ready[0], now):
            self.bury(self._take_fresh(), "expired")
        heads = [*(message for _, message in self.returned[:1]), *itertools.islice(self.ready, 1)]
        times = [expires for expires in map(expiry_of, heads) if expires is not None]
        if times:
            self.clock.plan(self._alarm, min(times))

    def _take_fresh(self) -> Message:
        """Take the first that never came back."""
        returned, self.returned = self.returned, []
        message = unpacked(self._take())
        self.returned = returned
        return message

    def clear(self) -> int:
        """Throw away what is ready or waits to be, on new brokers also what can't leave; publishers hear that there is room."""
        count = super().clear() + self._asleep.clear()
        if self.forwarder is not None and self.post.version.is_new:
            count += self.forwarder.clear()
        self._reopen()
        return count

    def _deliver(self, kept: Kept, consumer: Consumer) -> None:
        """Hand it out; a consumer that is full now loses its turn at once, not when it would have been served again."""
        super()._deliver(kept, consumer)
        if consumer.is_full:
            self.waiting.remove(consumer)
            consumer.is_waiting = False

    def _after_change(self) -> None:
        if self.overflow == "drop-head":
            if self.limit():
                self.expire()
        else:
            self._tell_publishers()

    def limit(self) -> bool:
        """Let go of the head as long as there is too much; of what goes at once, old brokers dead-letter the last first."""
        if self.post.version.is_new:
            return super().limit()
        pushed_out = []
        while len(self) and self._is_over():
            pushed_out.append(unpacked(self._take()))
        for message in reversed(pushed_out):
            self.bury(message, "maxlen")
        return bool(pushed_out)

    def _tell_publishers(self) -> None:
        if self._is_over():
            self.is_closed = dict.fromkeys(self.is_closed, True)
        else:
            self._reopen()

    def _reopen(self) -> None:
        """Tell publishers that there is room again, once there is plenty."""
        is_low = self.max_length is None or len(self) + self.leaving <= int(self.max_length * _REOPENS_AT)
        if is_low and (self.max_bytes is None or self._all_bytes <= int(self.max_bytes * _REOPENS_AT)):
            self.is_closed = dict.fromkeys(self.is_closed, False)

    def _is_over(self) -> bool:
        if self.max_length is not None and len(self) + self.leaving > self.max_length:
            return True
        return self.max_bytes is not None and self._all_bytes > self.max_bytes

    def bury(self, message: Message, reason: Reason) -> None:
        """Let a message leave; where that is to happen at least once, it stays until a target has it."""
        if self.forwarder is not None and self._keeps:
            self.forwarder.add(message, reason)
        else:
            super().bury(message, reason)

    def discard(self, delivery: Delivery, *, is_failure: bool) -> None:
        """The consumer rejected it for good; it may take room all the same, until it can leave."""
        super().discard(delivery, is_failure=is_failure)
        if self.is_closed:
            self._tell_publishers()

    def requeue(self, delivery: Delivery, *, is_failure: bool) -> None:
        """Put it in front again, at once or after a wait; too many failures are its end."""
        message = delivery.message.back(is_failure=is_failure or not self.post.version.is_new)
        self._note_requeued(message)
        self._release(delivery)
        if self.delivery_limit is not None and message.failures > self.delivery_limit:
            self.bury(message, "delivery_limit")
            if delivery.consumer is not None and not self.post.version.is_new:
                delivery.consumer.most += (
                    1  # Old brokers count it as answered twice: the consumer may hold one more for good.
                )
        elif self.delivery_limit is None and not self.post.version.is_new:
            self._append(message)  # Where returns are not limited, old brokers append.
        elif not (is_failure and self._asleep.takes(message)):
            self._put_in_front(message)
        self.run()
        if self.is_limited:
            self._after_change()

    def _put_in_front(self, message: Message) -> None:
        self._placed += 1
        message.place = self._placed
        self._put_back(message)

    def _wake_up(self, message: Message) -> None:
        """It has waited long enough."""
        self._put_in_front(message)
        self.run()
        if self.is_limited:
            self._after_change()
        self.post.hand_over()

    def on_forwarded(self) -> None:
        """Some of what was leaving has left."""
        if self.is_limited and self.overflow == "reject-publish":
            self._reopen()

    def visible_headers(self, message: Message, *, is_consumed: bool) -> dict[str, object]:
        """The headers that a consumer sees, with the number of deliveries that came to nothing."""
        headers = super().visible_headers(message, is_consumed=is_consumed)
        if not self.post.version.is_new:
            is_told = message.failures or not is_consumed
            return headers | {"x-delivery-count": message.failures} if is_told else headers
        if message.is_redelivered:
            headers["x-acquired-count"] = message.returns or message.failures
        if message.failures:
            headers["x-delivery-count"] = message.failures
        return headers


def _is_due(kept: Kept, now: int) -> bool:
    expires = expiry_of(kept)
    return expires is not None and expires <= now
