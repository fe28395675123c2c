"""Dead-lettering at least once: a quorum queue keeps what it lets go until every target has confirmed it."""

from collections import deque
from typing import TYPE_CHECKING

from delayctl.simulator.clock import Timer
from delayctl.simulator.rabbitmq_death import Reason
from delayctl.simulator.rabbitmq_events import Kept
from delayctl.simulator.rabbitmq_message import Message

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_quorum import QuorumQueue

RETRY_AFTER = 180_000
MAX_PENDING = 32  # What has no way out blocks what comes after it, once there are so many.


class _Pending:
    """A message that is on its way out: which targets have it, and when it was last tried to send it."""

    __slots__ = ("confirmed", "message", "original_keys", "reason", "sent_at")

    def __init__(self, message: Message, reason: Reason) -> None:
        self.message = message
        self.reason = reason
        self.original_keys = (message.key, message.further)
        self.confirmed: set[str] = set()
        self.sent_at: int | None = None


class Forwarder:
    """Sends on what one queue lets go, tries again every three minutes, and keeps it as long as that takes."""

    def __init__(self, queue: "QuorumQueue") -> None:
        self.queue = queue
        self._ahead: deque[tuple[Message, Reason]] = deque()
        self._pending: list[_Pending] = []
        self._timer: Timer | None = None
        self.bytes = 0  # Of all that has not left.

    def __len__(self) -> int:
        return len(self._ahead) + len(self._pending)

    def add(self, message: Message, reason: Reason) -> None:
        """Take what the queue let go."""
        self._ahead.append((message, reason))
        self.bytes += self.queue.size(message)
        self._forward()

    def clear(self) -> int:
        """Throw away all that has not left; says how many there were."""
        count = len(self)
        self._ahead.clear()
        self._pending.clear()
        self.bytes = 0
        self._watch()
        return count

    def retry(self) -> None:
        """Try again what was never sent, for the way out may have changed."""
        self._try_again()

    def _forward(self) -> None:
        while self._ahead and len(self._pending) < MAX_PENDING:
            message, reason = self._ahead.popleft()
            pending = _Pending(message, reason)
            # It takes room until all targets have it, of which the queue itself may be one.
            self._pending.append(pending)
            self.queue.post.record_death(message, self.queue, reason)
            if self._send(pending):
                self._pending.remove(pending)
                self.bytes -= self.queue.size(message)
            elif self.queue.post.is_logging:
                self.queue.post.note(Kept(message.number, self.queue.name))
        self._watch()

    def _send(self, pending: _Pending) -> bool:
        """Send to every target that has not confirmed it; says whether all have."""
        post = self.queue.post
        message = pending.message
        targets = post.targets(message)
        if not targets:
            return False
        post.note_dead_lettered(message, self.queue.name, pending.reason, targets)
        pending.sent_at = post.clock.now
        for target in targets:
            if target.name not in pending.confirmed and target.offer(message.copy(), self.queue.name):
                pending.confirmed.add(target.name)
        return all(target.name in pending.confirmed for target in targets)

    def _watch(self) -> None:
        clock = self.queue.post.clock
        if self._pending and self._timer is None:
            self._timer = clock.after(RETRY_AFTER, self._wake)
        elif not self._pending and self._timer is not None:
            clock.cancel(self._timer)
            self._timer = None

    def _wake(self) -> None:
        self._timer = None
        self._try_again()
        self.queue.post.hand_over()

    def _try_again(self) -> None:
        now = self.queue.post.clock.now
        for pending in tuple(self._pending):
            is_due = pending.sent_at is None or pending.sent_at + RETRY_AFTER <= now
            if is_due and self._resend(pending):
                self._pending.remove(pending)
                self.bytes -= self.queue.size(pending.message)
        self._forward()
        self.queue.on_forwarded()

    def _resend(self, pending: _Pending) -> bool:
        queue = self.queue
        if queue.exit is None:
            return False
        key, further = pending.original_keys if queue.exit_key is None else (queue.exit_key, ())
        message = pending.message
        message.exchange, message.key, message.further = queue.exit, key, further
        return self._send(pending)
