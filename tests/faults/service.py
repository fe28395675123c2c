"""A small service to be killed: consumes one queue and writes a line for every message it begins and finishes."""

import sys
import threading
import time

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.message import Message


def main(url: str, topology: str, handler: str) -> None:
    """Run until told to stop. `hang` never finishes a message, `slow` takes half a second."""

    def say(what: str, message: Message) -> None:
        # One write, so that lines of several workers do not mix.
        sys.stdout.write(f"{what} {message.message_id}\n")
        sys.stdout.flush()

    def hang(message: Message) -> None:
        say("begun", message)
        threading.Event().wait()

    def slow(message: Message) -> None:
        say("begun", message)
        time.sleep(0.5)
        say("done", message)

    consumer = DelayConsumer(url, topology=topology, workers=2)
    consumer.handle("target", {"hang": hang, "slow": slow}[handler])
    consumer.run()
    sys.stdout.write("closed\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
