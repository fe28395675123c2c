"""One publisher for all threads: one connection, no pool, and failures counted where they happen."""

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from delayctl.publishers import DelayPublisher

TOPOLOGY = Path(__file__).with_name("service.yaml")
THREADS, EACH = 8, 500


class Failures:
    """Called from the publisher's own thread: quick, and with a lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def note(self, delivery: Future[str]) -> None:
        """Count a message that was not confirmed."""
        if delivery.exception() is not None:
            with self._lock:
                self.count += 1


def work(publisher: DelayPublisher, failures: Failures, worker: int) -> None:
    """What a thread of the service does; `publish` waits by itself while too much is unconfirmed."""
    for number in range(EACH):
        delivery = publisher.publish(f"job {worker}.{number}", key="order.created", delay="3s")
        delivery.add_done_callback(failures.note)


def main(url: str) -> int:
    """Publish from all threads, then wait once for all confirmations."""
    failures = Failures()
    with DelayPublisher(url, topology=TOPOLOGY) as publisher:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda worker: work(publisher, failures, worker), range(THREADS)))
        publisher.flush(timeout=60)
    print(f"{THREADS} threads published {THREADS * EACH:,} messages, {failures.count} failed")
    return failures.count


if __name__ == "__main__":
    main(os.environ.get("DELAYCTL_URL", "amqp://guest:guest@127.0.0.1:5672/"))
