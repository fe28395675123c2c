"""A service that consumes: done, retry after a growing pause, or park; SIGTERM stops it without losing anything."""

import logging
import os
from pathlib import Path
from threading import Lock

from delayctl.consumers import DONE, DelayConsumer, Message, Outcome, Park

TOPOLOGY = Path(__file__).with_name("service.yaml")
_done_before: set[str] = set()
_noting = Lock()


def is_first(message_id: str) -> bool:
    """Note a message as done, in one step with asking: a service does this in its database, in the transaction of its work."""
    with _noting:  # The other copy may be with another worker at this very moment.
        if message_id in _done_before:
            return False
        _done_before.add(message_id)
        return True


def say(line: str) -> None:
    """Write a line in one go, since several workers speak."""
    print(f"{line}\n", end="", flush=True)


def handle(message: Message) -> Outcome:
    """Cancel an order that was not paid in time."""
    text = message.body.decode(errors="replace")
    if not text.strip():
        return Park("the body is empty")  # No retry would help.
    if text == "bank is down" and message.attempt < 2:
        raise ConnectionError("the bank does not answer")  # Any exception is a retry.
    if message.message_id and not is_first(message.message_id):
        say(f"seen before: {message.message_id}")
        return DONE
    say(f"handled {text!r} with key {message.key}, attempt {message.attempt}")
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
