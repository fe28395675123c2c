"""A DelayConsumer at work in a test, and handlers that remember what they saw."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.lateness import Lateness
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Outcome

from testbed.wait import until


@dataclass
class Seen:
    """What a handler saw, and what it answers."""

    answer: Callable[[Message], Outcome] = lambda _: None
    messages: list[Message] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __call__(self, message: Message) -> Outcome:
        """Handle a message."""
        self.messages.append(message)
        self.times.append(time.monotonic())
        return self.answer(message)

    @property
    def waits_ms(self) -> list[int]:
        """How long it was from each message to the next."""
        pairs = zip(self.times, self.times[1:], strict=False)
        return [round((after - before) * 1000) for before, after in pairs]

    def await_count(self, count: int, deadline: float = 20) -> None:
        """Wait until so many were seen."""
        until(lambda: len(self.messages) >= count, deadline, what=f"{count} messages", every=0.02)


@contextmanager
def running(
    url: Any,
    topology: Path,
    handlers: dict[str, Any],
    *,
    record: Path | None = None,
    lateness: Lateness | None = None,
    **options: Any,
) -> Iterator[DelayConsumer]:
    """A consumer at work; a handler may come with the options of `handle`, and all may be recorded in a folder."""
    consumer = DelayConsumer(url, topology=topology, **options)
    if lateness is not None:
        consumer.measure(lateness)
    if record is not None:
        consumer.record(record)
    for name, handler in handlers.items():
        function, chosen = handler if isinstance(handler, tuple) else (handler, {})
        consumer.handle(name, function, **chosen)
    thread = threading.Thread(target=consumer.run)
    thread.start()
    try:
        yield consumer
    finally:
        consumer.stop()
        thread.join(30)
        assert not thread.is_alive()


def raise_(_: Message) -> Outcome:
    """Fail."""
    raise RuntimeError("no luck")
