"""A plain service: publish a delayed message and know what became of it."""

import os
import sys
from pathlib import Path

from delayctl.publishers import DelayPublisher, Nacked, NotConfirmed, NotPublished, Unroutable

TOPOLOGY = Path(__file__).with_name("service.yaml")


def main(url: str) -> int:
    """Publish a few orders; the publisher lives as long as the service."""
    publisher = DelayPublisher(url, topology=TOPOLOGY)
    for number in (4711, 4712, 4713):
        delivery = publisher.publish(
            f'{{"order": {number}}}',
            key="order.created",
            delay="3s",
            message_id=f"order-{number}",  # The same for every copy: a consumer can tell that it has seen it.
            headers={"shop": "eu"},
        )
        try:
            print("confirmed", delivery.result(timeout=10))
        except Unroutable as error:
            print("nothing takes it, so trying again is no use:", error.what)
        except Nacked as error:
            print("a queue is full; try again later:", error.what)
        except NotPublished as error:
            print("not confirmed; publish it again with the same id:", error.message_id)
    try:
        publisher.close(timeout=30)
    except NotConfirmed as error:
        print("never confirmed:", *error.message_ids)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("DELAYCTL_URL", "amqp://guest:guest@127.0.0.1:5672/")))
