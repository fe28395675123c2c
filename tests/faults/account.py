"""What became of messages: sent, confirmed, delivered, lost, duplicated, early, late."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from delayctl.publishers.delivery import Delivery

EARLY_MS = 5  # Below what two clocks on one machine may disagree by.
LATE_MS = 1_000


class Account:
    """Filled by any thread, by message id. `lost` is what the broker confirmed and nobody received."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.sent: set[str] = set()
        self.confirmed: set[str] = set()
        self.failed: Counter[str] = Counter()  # By the name of the error.
        self.failed_ids: set[str] = set()
        self.received: Counter[str] = Counter()
        self.early: list[int] = []
        self.late: list[int] = []
        self._lock = threading.Lock()

    def watch(self, message_id: str, publish: Callable[[str], Delivery]) -> None:
        """Send a message and note what the broker answers."""
        with self._lock:
            self.sent.add(message_id)
        publish(message_id).add_done_callback(lambda answer: self._answered(message_id, answer.exception()))

    def _answered(self, message_id: str, error: BaseException | None) -> None:
        with self._lock:
            if error is None:
                self.confirmed.add(message_id)
            else:
                self.failed[type(error).__name__] += 1
                self.failed_ids.add(message_id)

    def delivered(self, message_id: str, due_ms: int | None = None) -> None:
        """Note that a message arrived now."""
        with self._lock:
            self.received[message_id] += 1
            if due_ms is not None:
                late = time.time_ns() // 1_000_000 - due_ms
                if late < -EARLY_MS:
                    self.early.append(-late)
                elif late > LATE_MS:
                    self.late.append(late)

    @property
    def lost(self) -> set[str]:
        """Confirmed, and never received."""
        return self.confirmed - self.received.keys()

    @property
    def duplicated(self) -> int:
        """Received more often than once."""
        return sum(self.received.values()) - len(self.received)

    @property
    def unanswered(self) -> set[str]:
        """Neither confirmed nor failed."""
        return self.sent - self.confirmed - self.failed_ids

    def has(self, message_ids: Iterable[str]) -> bool:
        """Whether all of these have arrived."""
        return self.received.keys() >= set(message_ids)

    def check(self) -> None:
        """Every message was answered, no confirmed one is lost, none was early, nothing came from nowhere."""
        assert not self.unanswered, self
        assert not self.lost, self
        assert not self.early, self
        assert self.received.keys() <= self.sent, self

    def __repr__(self) -> str:
        failed = ", ".join(f"{count:,} {name}" for name, count in sorted(self.failed.items()))
        earliest = f" (earliest {max(self.early) / 1000:.1f} s)" if self.early else ""
        latest = f" (latest {max(self.late) / 1000:.1f} s)" if self.late else ""
        return (
            f"{self.title}: sent {len(self.sent):,}, confirmed {len(self.confirmed):,}"
            f"{f', failed {failed}' if failed else ''}, delivered {len(self.received):,}, lost {len(self.lost):,}, "
            f"duplicated {self.duplicated:,}, early {len(self.early):,}{earliest}, late {len(self.late):,}{latest}"
        )
