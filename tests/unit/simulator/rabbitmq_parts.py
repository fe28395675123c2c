"""Small brokers for the tests of the RabbitMQ model."""

from typing import Literal

from delayctl.simulator.rabbitmq import Broker
from delayctl.topology.duration import Duration
from delayctl.topology.model import Binding, Exchange, Queue, Settings


def broker_with(*objects: Exchange | Queue | Binding, version: str = "4.3") -> Broker:
    """A broker with these objects."""
    broker = Broker(version=version)
    for thing in objects:
        match thing:
            case Exchange():
                broker.declare_exchange(thing)
            case Queue():
                broker.declare_queue(thing)
            case Binding():
                broker.bind(thing)
    return broker


def delay(name: str, ttl: int | None, *, to: str = "work", type: Literal["classic", "quorum"] = "classic") -> Queue:
    """A queue that lets go to another one what has waited so long."""
    time = None if ttl is None else Duration(ttl)
    return Queue(name, Settings(type=type, ttl=time, dead_letter_exchange="", dead_letter_key=to))


def bodies(broker: Broker, queue: str) -> list[bytes]:
    """What is ready in a queue, the head first."""
    return [delivery.body for delivery in broker.peek(queue)]


def take_all(broker: Broker, queue: str) -> list[bytes]:
    """Take all that is ready in a queue."""
    found = bodies(broker, queue)
    assert broker.purge(queue) == len(found)
    return found
