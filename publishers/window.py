"""The messages that the broker has not answered yet, by the number it counts them with."""

from collections.abc import Iterator
from dataclasses import dataclass

from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked, NotPublished, Unroutable


@dataclass(slots=True, eq=False)
class Entry:
    """A message on its way: all that is needed to send it again."""

    message_id: str
    exchange: str
    key: str
    frames: bytes
    size: int
    delivery: Delivery
    returned: str | None = None  # Why the broker could not route it.


class Window:
    """What was sent over the present channel and not answered."""

    def __init__(self) -> None:
        self._waiting: dict[int, Entry] = {}
        self._next = 1
        self._oldest = 1

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._waiting.values())

    def sent(self, entry: Entry) -> None:
        """Number a message as the broker does, in the order of sending."""
        self._waiting[self._next] = entry
        self._next += 1

    def answered(self, tag: int, *, multiple: bool) -> list[Entry]:
        """Take out the message with this number; `multiple`, and all before it."""
        waiting = self._waiting
        if not multiple:
            entry = waiting.pop(tag, None)
            return [entry] if entry else []
        found = [entry for number in range(self._oldest, tag + 1) if (entry := waiting.pop(number, None))]
        self._oldest = max(self._oldest, tag + 1)
        return found

    def returned(self, message_id: str, exchange: str, key: str, reason: str) -> None:
        """Remember that a message could not be routed; its confirmation follows."""
        for entry in self._waiting.values():
            if entry.message_id == message_id and (entry.exchange, entry.key) == (exchange, key) and not entry.returned:
                entry.returned = reason
                return

    def start_again(self) -> list[Entry]:
        """Give back everything for a new channel, in the order of sending."""
        entries = list(self._waiting.values())
        for entry in entries:
            entry.returned = None
        self._waiting.clear()
        self._next = self._oldest = 1
        return entries


def failure_of(entry: Entry) -> NotPublished:
    """What it means for a message that the broker gave it back, or did not take it."""
    if entry.returned is not None:
        return Unroutable(
            f"no queue takes key '{entry.key}' from exchange '{entry.exchange}' ({entry.returned})",
            fix="look at the way with delayctl explain; delayctl apply declares what is missing",
            message_id=entry.message_id,
        )
    return Nacked(
        f"the broker refused the message for exchange '{entry.exchange}': a queue is full or can't keep it",
        fix="publish it again later; delayctl status shows how full the levels are",
        message_id=entry.message_id,
    )
