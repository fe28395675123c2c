"""A service that consumes: done, retry after a growing pause, or park; SIGTERM stops it without losing anything."""

import logging
import os
from pathlib import Path

from delayctl.consumers import DONE, DelayConsumer, Message, Outcome, Park

TOPOLOGY = Path(__file__).with_name("service.yaml")
_done_before: set[str] = set()  # A service keeps this in its database.


def say(line: str) -> None:
    """Write a line in one go, since several workers speak."""
    print(f"{line}\n", end="", flush=True)


def handle(message: Message) -> Outcome:
    """Cancel an order that was not paid in time."""
    if message.message_id in _done_before:
        say(f"seen before: {message.message_id}")
        return DONE
    text = message.body.decode(errors="replace")
    if not text.strip():
        return Park("the body is empty")  # No retry would help.
    if text == "bank is down" and message.attempt < 2:
        raise ConnectionError("the bank does not answer")  # Any exception is a retry.
    say(f"handled {text!r} with key {message.key}, attempt {message.attempt}")
    if message.message_id:
        _done_before.add(message.message_id)
    return DONE


def main(url: str) -> None:
    """Consume until SIGTERM or Ctrl-C."""
    consumer = DelayConsumer(url, topology=TOPOLOGY, workers=4, prefetch=200)
    consumer.handle("orders.timeout.queue", handle)
    consumer.run()
    say("stopped; all that was begun is finished")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    main(os.environ.get("DELAYCTL_URL", "amqp://guest:guest@127.0.0.1:5672/"))
