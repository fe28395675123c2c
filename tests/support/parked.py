"""Messages that were given up, by a service at work."""

from collections.abc import Iterable
from pathlib import Path

from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Park
from delayctl.publishers.publisher import DelayPublisher

from tests.support.consuming import running
from tests.support.rabbit import Rabbit

_FEW = 100


def park(
    rabbit: Rabbit, topology: Path, ids: Iterable[str], *, key: str, queue: str, parking: str, reason: str = "no luck"
) -> None:
    """Publish messages whose body is their id, and have their service give them up for a reason; in order, if few."""
    before, count = rabbit.ready(parking), 0
    with DelayPublisher(rabbit.url, topology=topology) as publisher:
        for count, message_id in enumerate(ids, 1):  # noqa: B007 (counted)
            publisher.publish(message_id.encode(), key=key, message_id=message_id, headers={"shop": "eu"})

    def give_up(_: Message) -> Park:
        return Park(reason)

    workers = 1 if count <= _FEW else 4  # Several keep no order.
    with running(rabbit.url, topology, {queue: give_up}, prefetch=1_000, workers=workers):
        rabbit.await_ready(parking, before + count, deadline=120)
