"""What has arrived in a queue, with ids: for tests that count."""

from dataclasses import dataclass, field
from typing import Any

from testbed.wait import until
from tests.support.rabbit import Rabbit


@dataclass(frozen=True)
class Arrival:
    """A message as it came out."""

    message_id: str
    body: bytes
    key: str
    headers: dict[str, Any] = field(default_factory=dict)


def take_all(rabbit: Rabbit, queue: str) -> list[Arrival]:
    """Take all that a queue holds now."""
    found: list[Arrival] = []
    with rabbit.channel() as channel:
        while int(channel.queue_declare(queue, passive=True).method.message_count):
            for method, properties, body in channel.consume(queue, auto_ack=True, inactivity_timeout=0.2):
                if method is None or properties is None or body is None:
                    break
                own = {name: value for name, value in (properties.headers or {}).items() if not name.startswith("x-")}
                found.append(Arrival(str(properties.message_id), body, str(method.routing_key), own))
            channel.cancel()
    return found


def await_arrivals(rabbit: Rabbit, queue: str, count: int, *, deadline: float = 30) -> list[Arrival]:
    """So many messages at least, as soon as they are there."""
    found: list[Arrival] = []

    def all_there() -> bool:
        found.extend(take_all(rabbit, queue))
        return len(found) >= count

    until(all_there, deadline, what=f"the arrival of {count} messages in {queue}", every=0.05)
    return found
