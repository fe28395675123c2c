"""Publishers and consumers that belong to a simulated broker: made with its address and its clock, ended with it."""

import threading
import time
from collections.abc import Callable

from delayctl.consumers.consumer import DelayConsumer
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.errors import DelayctlError

_LOOK_EVERY_S = 0.002


class Running:
    """A consumer in a thread of its own; `error` is what ended it."""

    def __init__(self, consumer: DelayConsumer) -> None:
        self.consumer = consumer
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="consumer under test", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether it still consumes."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Have it finish what it has begun."""
        self.consumer.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.consumer.run()
        except BaseException as error:  # Whatever it is, the test is told.
            self.error = error


class Clients:
    """All that were made here."""

    def __init__(self) -> None:
        self._publishers: list[DelayPublisher] = []
        self._running: list[Running] = []

    def add(self, publisher: DelayPublisher) -> DelayPublisher:
        """Have a publisher closed at the end."""
        self._publishers.append(publisher)
        return publisher

    def start(self, consumer: DelayConsumer, is_there: Callable[[], bool], patience_s: float) -> None:
        """Run a consumer until the end; returns when `is_there`, raises what kept it from coming."""
        running = Running(consumer)
        self._running.append(running)
        deadline = time.monotonic() + patience_s
        while not is_there():
            if not running.is_alive:
                self._running.remove(running)
                raise running.error or DelayctlError("the consumer ended before it began", fix="do not stop it")
            if time.monotonic() > deadline:
                raise DelayctlError(
                    f"the consumer has not begun within {patience_s:g} s",
                    fix="check that it connects to the broker's url",
                )
            time.sleep(_LOOK_EVERY_S)

    @property
    def unanswered(self) -> int:
        """How many messages of our publishers wait for an answer that can come."""
        return sum(publisher.unanswered for publisher in self._publishers if not publisher.is_blocked)

    def close(self) -> None:
        """End all of them; the first error is raised when all are ended."""
        errors: list[BaseException] = []
        for running in self._running:
            running.stop()
            if running.error is not None:
                errors.append(running.error)
        for publisher in self._publishers:
            try:
                publisher.close()
            except DelayctlError as error:
                errors.append(error)
        if errors:
            raise errors[0]
