"""What was handed over and not answered: filled by any thread, emptied by the one that talks to the broker."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures

from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotPublished, PublisherClosed
from delayctl.publishers.failures import Failures
from delayctl.publishers.window import Entry, Window, failure_of

_MOST_BYTES = 1 << 26  # Whatever the window says: large messages fill the memory before they fill the window.
_WAKE_AFTER = 0.75  # Waiting publishers go on when the window is this full: they need not be woken for each message.

Judge = Callable[[Entry], NotPublished | None]


class Outbox:
    """Messages to be sent, messages to be answered, and the threads that wait for room."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._unsent: deque[Entry] = deque()
        self._window = Window()
        self._resolving: Sequence[Entry] = ()  # Taken out of the window, and their futures not told yet.
        self._count = self._bytes = 0
        self._waiting = 0
        self._suspects = 0  # So many at the front are sent one at a time: one of them made the broker hang up.
        self._doubted: set[str] = set()  # Exchanges that made the broker hang up: what goes there is sent alone, too.
        self._is_alone = False  # What is in the window is such a one.
        self._is_asleep = False
        self._is_open = True
        self._sender: int | None = None
        self._failures = Failures()  # For the next flush.

    @property
    def is_open(self) -> bool:
        """Whether messages are taken."""
        return self._is_open

    @property
    def count(self) -> int:
        """How many messages are here, unanswered."""
        return self._count

    # For any thread.

    def put(self, entry: Entry) -> bool:
        """Take in a message, and say whether the sender has to be woken; waits while too many are unanswered."""
        with self._lock:
            while self._is_full() and self._is_open and threading.get_ident() != self._sender:
                self._waiting += 1
                try:
                    self._changed.wait()
                finally:
                    self._waiting -= 1
            if not self._is_open:
                raise PublisherClosed(
                    "the publisher is closed", fix="publish before closing it", message_id=entry.message_id
                )
            self._count += 1
            self._bytes += entry.size
            self._unsent.append(entry)
            must_wake, self._is_asleep = self._is_asleep, False
            return must_wake

    def _is_full(self) -> bool:
        return self._count >= self._most or self._bytes >= _MOST_BYTES

    def wait_until_answered(self, timeout_s: float | None) -> tuple[str, ...]:
        """Wait for an answer to all that is here now; gives the ids of those that had none in time."""
        entries = self._unanswered()
        _, late = futures.wait([entry.delivery for entry in entries], timeout_s)
        return tuple(entry.message_id for entry in entries if entry.delivery in late)

    def holds(self, delivery: Delivery) -> bool:
        """Whether this is the future of a message that is here."""
        return any(entry.delivery is delivery for entry in self._unanswered())

    def _unanswered(self) -> list[Entry]:
        with self._lock:
            return [*self._resolving, *self._window, *self._unsent]

    def unseen_failures(self) -> tuple[tuple[NotPublished, ...], int]:
        """What failed since this was last asked, as far as nobody has looked at its future; and how many more did."""
        with self._lock:  # Several threads may flush: each failure is told to one of them.
            failures, self._failures = self._failures, Failures()
        return failures.unseen()

    def close(self) -> None:
        """Take no more messages."""
        with self._lock:
            self._is_open = False
            self._changed.notify_all()

    # For the sender.

    def claim(self) -> None:
        """Make the calling thread the sender: nothing it does may wait for itself."""
        self._sender = threading.get_ident()

    def fall_asleep(self) -> bool:
        """Note that the sender has nothing to send and wants to be woken; False where it has."""
        with self._lock:
            self._is_asleep = not self._unsent or self._must_wait()
            return self._is_asleep

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the outbox is closed."""
        with self._lock:
            self._changed.wait_for(lambda: not self._is_open, seconds)

    def next_batch(self, most_bytes: int) -> list[bytes]:
        """Frames to send now, numbered as the broker numbers them."""
        batch: list[bytes] = []
        size = 0
        with self._lock:
            if self._must_wait():
                return batch
            unsent, sent, doubted = self._unsent, self._window.sent, self._doubted
            self._is_alone = bool(unsent) and self._is_suspect()
            if self._is_alone:
                self._suspects = max(0, self._suspects - 1)
                most_bytes = 1
            while unsent and size < most_bytes:
                if doubted and batch and unsent[0].exchange in doubted:
                    break
                entry = unsent.popleft()
                sent(entry)
                batch.append(entry.frames)
                size += len(entry.frames)
        return batch

    def _must_wait(self) -> bool:
        """Whether what comes next is to be sent alone, or goes behind such a one, and something is unanswered."""
        return len(self._window) > 0 and (self._is_alone or (bool(self._unsent) and self._is_suspect()))

    def _is_suspect(self) -> bool:
        return self._suspects > 0 or (bool(self._doubted) and self._unsent[0].exchange in self._doubted)

    def answered(self, tag: int, *, is_ack: bool, multiple: bool) -> None:
        """The broker's answer to one message, or to all up to it."""
        with self._lock:
            entries = self._window.answered(tag, multiple=multiple)
            self._leave(entries)
            if self._doubted and is_ack:
                self._doubted.difference_update([entry.exchange for entry in entries])
        for entry in entries:
            if is_ack and entry.returned is None:
                entry.delivery.resolve(entry.message_id)
            else:
                self._fail(entry, failure_of(entry))
        self._resolving = ()

    def returned(self, message_id: str, exchange: str, key: str, reason: str) -> None:
        """The broker could not route a message; its answer follows."""
        with self._lock:
            self._window.returned(message_id, exchange, key, reason)

    def send_again(self) -> None:
        """All that is unanswered is to be sent over a new channel."""
        with self._lock:
            entries = self._window.start_again()
            self._suspects += len(entries) if self._is_alone else 0
            self._unsent.extendleft(reversed(entries))

    def blame(self, judge: Judge, last_resort: Judge) -> bool:
        """A message made the broker hang up: fail those that `judge` finds guilty, send the others again.

        Where it finds none they are sent one at a time, until one is alone when it happens again. False where nothing
        was sent that it could be about.
        """
        with self._lock:
            entries = self._window.start_again()
            failed = [(entry, error) for entry in entries if (error := judge(entry))]
            self._doubted |= {entry.exchange for entry, _ in failed}
            if not failed and (self._is_alone or len(entries) == 1):
                failed = [(entry, error) for entry in entries if (error := last_resort(entry))]
            guilty = {id(entry) for entry, _ in failed}
            others = [entry for entry in entries if id(entry) not in guilty]
            self._suspects += 0 if failed else len(others)
            self._unsent.extendleft(reversed(others))
            self._leave([entry for entry, _ in failed])
        for entry, error in failed:
            self._fail(entry, error)
        self._resolving = ()
        return bool(entries)

    def fail_all(self, error_of: Callable[[Entry], NotPublished]) -> None:
        """Give up everything that is unanswered."""
        with self._lock:
            entries = [*self._window.start_again(), *self._unsent]
            self._unsent.clear()
            self._suspects = 0
            self._leave(entries)
        for entry in entries:
            self._fail(entry, error_of(entry))
        self._resolving = ()

    def _leave(self, entries: Sequence[Entry]) -> None:
        """Make room; the lock is held. Whoever waits for answers sees them until their futures are told."""
        self._resolving = entries
        self._count -= len(entries)
        self._bytes -= sum([entry.size for entry in entries])
        if self._waiting and self._count <= self._most * _WAKE_AFTER:
            self._changed.notify_all()

    def _fail(self, entry: Entry, error: NotPublished) -> None:
        if not entry.delivery.has_callback:
            with self._lock:
                self._failures.add(entry.delivery, error)
        entry.delivery.resolve(entry.message_id, error)
