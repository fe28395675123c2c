"""What a running broker is, and what is said when there is none."""

from collections.abc import Sequence
from dataclasses import dataclass, field

WAYS = (
    "name a running one: export DELAYCTL_URL=amqp://user:password@host:5672/",
    "start a Docker engine (the image rabbitmq:4.3-management is pulled by itself)",
    "install one: sudo apt-get install rabbitmq-server (a private node is started, the system's own is not touched)",
)


@dataclass(frozen=True)
class RunningBroker:
    """A broker that answers on AMQP and on its management API."""

    how: str
    version: str
    url: str = field(repr=False)
    management_url: str = field(repr=False)


class BrokerUnavailable(Exception):
    """No broker could be had; the text says why and how to get one."""

    def __init__(self, *reasons: str, ways: Sequence[str] = WAYS) -> None:
        self.reasons = reasons
        self.ways = tuple(ways)
        super().__init__(_text(reasons, self.ways))


def _text(reasons: Sequence[str], ways: Sequence[str]) -> str:
    lines = ["no RabbitMQ broker to be had", *(f"  tried: {reason}" for reason in reasons)]
    return "\n".join([*lines, *(f"  fix: {way}" for way in ways)])
