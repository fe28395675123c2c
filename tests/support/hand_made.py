"""Delay topologies that people and other products make, declared through the management API as its UI does."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tests.support.rabbit import Rabbit

LEVELS = {"1m": 60_000, "5m": 300_000, "15m": 900_000}
BITS = 28


@dataclass(frozen=True)
class HandMade:
    """Declares objects one by one in a virtual host."""

    rabbit: Rabbit

    def exchange(self, name: str, kind: str = "topic", *, internal: bool = False, **arguments: Any) -> None:
        """Add an exchange; underscores in names of arguments become dashes."""
        body = {"type": kind, "durable": True, "auto_delete": False, "internal": internal}
        self.rabbit.api("PUT", f"exchanges/{{vhost}}/{_path(name)}", {**body, "arguments": _dashed(arguments)})

    def queue(self, name: str, *, durable: bool = True, **arguments: Any) -> None:
        """Add a queue; underscores in names of arguments become dashes."""
        body = {"durable": durable, "auto_delete": False, "arguments": _dashed(arguments)}
        self.rabbit.api("PUT", f"queues/{{vhost}}/{_path(name)}", body)

    def bind(self, source: str, queue: str, key: str = "", **arguments: Any) -> None:
        """Bind a queue to an exchange."""
        self._bind(source, "q", queue, key, arguments)

    def bind_exchange(self, source: str, exchange: str, key: str = "", **arguments: Any) -> None:
        """Bind an exchange to an exchange."""
        self._bind(source, "e", exchange, key, arguments)

    def _bind(self, source: str, kind: str, destination: str, key: str, arguments: dict[str, Any]) -> None:
        place = f"bindings/{{vhost}}/e/{_path(source)}/{kind}/{_path(destination)}"
        self.rabbit.api("POST", place, {"routing_key": key, "arguments": _dashed(arguments)})

    def recipe(self, exit_type: str = "topic") -> None:
        """The well-known recipe: delay.exchange, three delay queues with TTL, length and exit, bound by hand."""
        self.exchange("orders.exchange")
        self.exchange("delay.exchange", exit_type)
        self.queue("orders.timeout.queue")
        for level, ttl in LEVELS.items():
            self.queue(
                f"delay.{level}.queue",
                x_message_ttl=ttl,
                x_max_length=1_000_000,
                x_dead_letter_exchange="delay.exchange",
            )
            self.bind("orders.exchange", f"delay.{level}.queue", f"order.wait.{level}")
            self.bind("delay.exchange", "orders.timeout.queue", f"order.wait.{level}")

    def single_exchange(self) -> None:
        """Everything hangs on one direct exchange; the dead-letter key leads out."""
        self.exchange("shop", "direct")
        self.queue("work")
        self.bind("shop", "work", "work")
        for level, ttl in LEVELS.items():
            self.queue(
                f"wait_{level}", x_message_ttl=ttl, x_dead_letter_exchange="shop", x_dead_letter_routing_key="work"
            )
            self.bind("shop", f"wait_{level}", f"wait.{level}")

    def default_exchange(self) -> None:
        """A retry queue that leads straight back to the work queue, by the default exchange."""
        self.queue("work", x_dead_letter_exchange="", x_dead_letter_routing_key="work.retry")
        self.queue("work.retry", x_message_ttl=30_000, x_dead_letter_exchange="", x_dead_letter_routing_key="work")

    def by_policy(self) -> None:
        """The recipe with bare queues, and one policy that makes them wait."""
        self.exchange("orders.exchange")
        self.exchange("delay.exchange")
        self.queue("orders.timeout.queue")
        self.queue("delay.1m.queue")
        self.bind("orders.exchange", "delay.1m.queue", "order.created")
        self.bind("delay.exchange", "orders.timeout.queue", "order.created")
        self.rabbit.put_policy(
            "waits", "^delay\\..*\\.queue$", message_ttl=60_000, dead_letter_exchange="delay.exchange"
        )

    def own_shape(self) -> None:
        """Just what delayctl would declare for one level, made by hand."""
        self.exchange("orders.exchange")
        self.queue("orders.timeout.queue")
        self.exchange("delay.unrouted.exchange", "fanout")
        self.queue("delay.unrouted.queue")
        self.bind("delay.unrouted.exchange", "delay.unrouted.queue")
        self.exchange("delay.exchange", alternate_exchange="delay.unrouted.exchange")
        self.queue("delay.5m.queue", x_message_ttl=300_000, x_max_length=10, x_dead_letter_exchange="delay.exchange")
        self.exchange("delay.5m.exchange", "fanout")
        self.bind("delay.5m.exchange", "delay.5m.queue")
        self.bind_exchange("orders.exchange", "delay.5m.exchange", "order.created")
        self.bind("delay.exchange", "orders.timeout.queue", "order.created")

    def ladder(self, family: str, delivery: str, *, digits: int, **arguments: Any) -> None:
        """28 levels, a topic exchange and a queue each: bit n of the key decides about level n."""
        names = [f"{family}{number:0{digits}d}" for number in range(BITS)]
        self.exchange(delivery)
        for number, name in enumerate(names):
            below = names[number - 1] if number else delivery
            above = "*." * (BITS - 1 - number)
            self.exchange(name)
            self.queue(name, x_message_ttl=2**number * 1000, x_dead_letter_exchange=below, **arguments)
            self.bind(name, name, f"{above}1.#")
            self.bind_exchange(name, below, f"{above}0.#")

    def nservicebus(self, endpoint: str) -> None:
        """What NServiceBus.RabbitMQ 7 and later declares, with one endpoint of the conventional topology."""
        safe = {"x_dead_letter_strategy": "at-least-once", "x_overflow": "reject-publish"}
        self.ladder("nsb.v2.delay-level-", "nsb.v2.delay-delivery", digits=2, x_queue_type="quorum", **safe)
        self.queue(endpoint, x_queue_type="quorum")
        self.exchange(endpoint, "fanout")
        self.bind(endpoint, endpoint)
        self.bind_exchange("nsb.v2.delay-delivery", endpoint, f"#.{endpoint}")

    def kombu(self, queue: str) -> None:
        """What kombu 5.5 and later declares for classic queues, with one queue of a topic exchange."""
        overflow = {"x_overflow": "reject-publish"}
        self.ladder("celery_delayed_", "celery_delayed_delivery", digits=1, x_queue_type="classic", **overflow)
        self.exchange(queue)
        self.queue(queue)
        self.bind_exchange("celery_delayed_delivery", queue, f"#.{queue}")
        self.bind(queue, queue, f"#.{queue}")


def _dashed(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in arguments.items()}


def _path(name: str) -> str:
    return quote(name, safe="")
