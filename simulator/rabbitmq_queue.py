"""What classic and quorum queues have in common: messages in order, expiry at the head, limits, consumers."""

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from delayctl.simulator.clock import Timer
from delayctl.simulator.rabbitmq_consumer import NO_LIMIT, Consumer
from delayctl.simulator.rabbitmq_death import Reason
from delayctl.simulator.rabbitmq_events import Acked, Delivered, Requeued
from delayctl.simulator.rabbitmq_idle import IdleTime
from delayctl.simulator.rabbitmq_message import (
    FORGOTTEN,
    Delivery,
    Kept,
    Message,
    Properties,
    new_delivery,
    new_message,
    unpacked,
)
from delayctl.topology.model import Queue, Settings

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_post import Post

__all__ = ["NO_LIMIT", "Consumer", "MessageQueue"]


class MessageQueue:
    """A queue and all that is in it. `returned` are the messages that came back; they stand in front of `ready`."""

    def __init__(self, declared: Queue, post: "Post") -> None:
        self.declared = declared
        self.name = declared.name
        self.post = post
        self.clock = post.clock
        self.ready: deque[Kept] = deque()
        self.returned: list[tuple[int, Message]] = []
        self.unacked = 0
        self.bytes = 0  # Of what is ready; counted where there is a limit only.
        self.waiting: deque[Consumer] = deque()
        self.consumers: list[Consumer] = []
        self._alarm = Timer(self._wake)
        self._placed = 0
        self._is_forgetful = False  # What never lay in the queue is not looked at for what happened to it elsewhere.
        self.ttl: int | None = None
        self.exit: str | None = None
        self.exit_key: str | None = None
        self.max_length: int | None = None
        self.max_bytes: int | None = None
        self.most = NO_LIMIT  # More than that in the queue, and its head is let go.
        self.is_limited = False
        self.overflow = "drop-head"
        self.idle = IdleTime(post.clock, is_used=lambda: bool(self.consumers), on_over=lambda: post.on_idle(self))

    @property
    def leaving(self) -> int:
        """How many were dead-lettered and wait for a target's confirm."""
        return 0

    def configure(self, settings: Settings) -> None:
        """Take over the settings in force; what waits keeps the expiry that it came with."""
        self.ttl = None if settings.ttl is None else settings.ttl.ms
        self.exit, self.exit_key = settings.dead_letter_exchange, settings.dead_letter_key
        self.max_length, self.max_bytes = settings.max_length, settings.max_bytes
        self.is_limited = not (self.max_length is None and self.max_bytes is None)
        self.idle.limit_to(None if settings.expires is None else settings.expires.ms)
        self.bytes = sum(map(self.size, self.messages())) if self.max_bytes is not None else 0

    # What is in it.

    def __len__(self) -> int:
        return len(self.ready) + len(self.returned)

    def messages(self) -> tuple[Message, ...]:
        """What is ready, the head first."""
        returned = (message for _, message in sorted(self.returned, key=lambda entry: entry[0]))
        return (*returned, *map(unpacked, self.ready))

    def size(self, message: Message) -> int:
        """How much of max-length-bytes a message takes."""
        return len(message.body)

    def clear(self) -> int:
        """Throw away what is ready; says how many there were."""
        count = len(self)
        self.ready.clear()
        self.returned.clear()
        self.bytes = 0
        return count

    def _take(self) -> Kept:
        kept = heappop(self.returned)[1] if self.returned else self.ready.popleft()
        if self.max_bytes is not None:
            self.bytes -= self.size(unpacked(kept))
        return kept

    # In.

    def offer(self, message: Message, publisher: str = "") -> bool:
        """Take a message in, unless the queue is full and refuses it; says whether it was taken."""
        raise NotImplementedError

    def offer_plain(self, number: int, exchange: str, key: str, body: bytes, properties: Properties) -> bool:
        """The same for what was published without headers and expiration."""
        return self.offer(new_message(number, exchange, key, body, None, properties))

    def put(self, letter: Kept) -> None:
        """Take a message that nobody waits to hear of: one that was dead-lettered."""
        raise NotImplementedError

    def _admit(self, message: Message) -> bool:
        """Hand it straight to a consumer that waits, else append it; says whether the head may have to expire now."""
        expiration = message.properties.expiration
        ttl = self.ttl if expiration is None else self._shorter_ttl(expiration)
        if ttl is not None:
            message.expires = self.clock.now + ttl
        ready = self.ready
        if self.waiting and not ready and not self.returned and (consumer := self._next_consumer()) is not None:
            if self._is_forgetful:
                message.returns = FORGOTTEN
            self._deliver(message, consumer)
            return False
        ready.append(message)
        if self.max_bytes is not None:
            self.bytes += self.size(message)
        if len(ready) + len(self.returned) > self.most and self.limit():
            return True
        return ttl is not None and len(ready) == 1 and not self.returned

    def _shorter_ttl(self, expiration: str) -> int:
        """The queue's time to live or the message's own, whichever is less."""
        return int(expiration) if self.ttl is None else min(self.ttl, int(expiration))

    # Out, by time.

    def expire(self) -> None:
        """Let the head go, and then the next, as long as its time has come; then wait for the one in front."""
        clock, ready, returned = self.clock, self.ready, self.returned
        now = clock.now
        while ready or returned:
            head = returned[0][1] if returned else ready[0]
            expires = head[0] if isinstance(head, tuple) else head.expires
            if expires is None:
                return
            if expires > now:
                clock.plan(self._alarm, expires)
                return
            if isinstance(head, tuple) and self.max_bytes is None:
                ready.popleft()
                self.post.dead_letter_plain(head, self, "expired")
            else:
                self.bury(unpacked(self._take()), "expired")

    def _wake(self) -> None:
        self.expire()
        if self.waiting:
            self.run()
        post = self.post
        if post.letters or post.due:
            post.hand_over()

    def bury(self, message: Message, reason: Reason) -> None:
        """Let a message leave by the dead-letter exchange, if there is one."""
        self.post.dead_letter(message, self, reason)

    # Out, to consumers.

    def run(self) -> None:
        """Do what is due: expire, hand out."""
        self.expire()
        while (self.ready or self.returned) and (consumer := self._next_consumer()) is not None:
            self._deliver(self._take(), consumer)
            self.expire()

    def _next_consumer(self) -> Consumer | None:
        waiting = self.waiting
        while waiting:
            consumer = waiting[0]
            if consumer.unacked < consumer.most:
                if len(waiting) > 1:
                    waiting.rotate(-1)
                return consumer
            waiting.popleft()
            consumer.is_waiting = False
        return None

    def _deliver(self, kept: Kept, consumer: Consumer) -> None:
        # What `new_delivery` and `_hold` do is written out, as every message comes by here.
        delivery = Delivery()
        delivery.kept = kept
        delivery.source = self
        delivery.consumer = consumer
        delivery._headers = None
        if consumer.no_ack:
            delivery.is_open = False
            delivery.place = 0
        else:
            delivery.is_open = True
            self.unacked += 1
            consumer.unacked += 1
            if isinstance(kept, tuple):
                self._placed = delivery.place = self._placed + 1
            elif not kept.place:
                self._placed = kept.place = self._placed + 1
        post = self.post
        if post.is_logging:
            post.note(Delivered(delivery.message.number, self.name, consumer.tag, delivery.redelivered))
        post.due.append(delivery)

    def get(self, *, no_ack: bool) -> Delivery | None:
        """Hand out the head."""
        self.expire()
        if not len(self):
            return None
        delivery = new_delivery(self._take(), self, None)
        if not no_ack:
            self._hold(delivery)
        if self.post.is_logging:
            self.post.note(Delivered(delivery.message.number, self.name, "", delivery.redelivered))
        self.expire()
        return delivery

    def _hold(self, delivery: Delivery) -> None:
        """Await an answer, and keep the place of what may come back."""
        delivery.is_open = True
        self.unacked += 1
        kept = delivery.kept
        if isinstance(kept, tuple):
            self._placed = delivery.place = self._placed + 1
        elif not kept.place:
            self._placed = kept.place = self._placed + 1

    # Back from consumers.

    def ack(self, delivery: Delivery) -> None:
        """The consumer is done with it."""
        if self.post.is_logging:
            self.post.note(Acked(delivery.message.number, self.name))
        # What `_release` does is written out, as nearly every message comes by here.
        delivery.is_open = False
        self.unacked -= 1
        consumer = delivery.consumer
        if consumer is not None:
            consumer.unacked -= 1
            if not consumer.is_waiting:
                self._line_up(consumer)
        if self.ready or self.returned:
            self.run()

    def discard(self, delivery: Delivery, *, is_failure: bool) -> None:
        """The consumer rejected it for good."""
        self._release(delivery)
        # Before what expires now that it is the head; where it comes straight back, it stands behind all that is here.
        self.bury(delivery.message.back(is_failure=is_failure), "rejected")
        self.run()

    def requeue(self, delivery: Delivery, *, is_failure: bool) -> None:
        """The consumer gave it back."""
        raise NotImplementedError

    def _note_requeued(self, message: Message) -> None:
        if self.post.is_logging:
            self.post.note(Requeued(message.number, self.name))

    def _append(self, message: Message) -> None:
        self.ready.append(message)
        if self.max_bytes is not None:
            self.bytes += self.size(message)

    def _put_back(self, message: Message) -> None:
        heappush(self.returned, (message.place, message))
        if self.max_bytes is not None:
            self.bytes += self.size(message)

    def _release(self, delivery: Delivery) -> None:
        delivery.is_open = False
        self.unacked -= 1
        consumer = delivery.consumer
        if consumer is not None:
            consumer.unacked -= 1
            if not consumer.is_waiting:
                self._line_up(consumer)

    def _line_up(self, consumer: Consumer) -> None:
        if not consumer.is_cancelled:
            consumer.is_waiting = True
            self.waiting.append(consumer)

    # Consumers come and go.

    def add(self, consumer: Consumer) -> None:
        """Let a consumer take its turn, after the others."""
        self.consumers.append(consumer)
        self.waiting.append(consumer)
        self.run()

    def remove(self, consumer: Consumer) -> None:
        """Hand out no more to a consumer; what it has, it keeps."""
        consumer.is_cancelled = True
        self.consumers.remove(consumer)
        self.touch()
        if consumer.is_waiting:
            self.waiting.remove(consumer)
            consumer.is_waiting = False

    def touch(self) -> None:
        """Somebody uses the queue: if it expires when it is idle, the time begins anew."""
        self.idle.touch()

    def visible_headers(self, message: Message, *, is_consumed: bool) -> dict[str, object]:
        """The headers that a consumer of this queue sees, or who takes single messages with `get`."""
        del is_consumed
        return self.post.headers_of(message)

    def limit(self) -> bool:
        """Let go of the head as long as there is too much; says whether any went."""
        is_changed = False
        while len(self) and self._is_over():
            self.bury(unpacked(self._take()), "maxlen")
            is_changed = True
        return is_changed

    def _is_over(self) -> bool:
        if self.max_length is not None and len(self) > self.max_length:
            return True
        return self.max_bytes is not None and self.bytes > self.max_bytes
