"""A small shop: as its file has it, as a broker has it, and what plans say of the two."""

from dataclasses import replace

from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Queue
from delayctl.topology.plan import Difference, Plan, title
from delayctl.topology.spec import ExchangeSpec, QueueSpec

from tests.support.examples import shop

SHOP, LONGER = shop("5m"), shop("5m", max_length=99)
DELAY_QUEUE = next(queue for queue in SHOP.queues if queue.name == "delay.5m.queue")
LONGER_QUEUE = next(queue for queue in LONGER.queues if queue.name == "delay.5m.queue")
INTO_QUEUE = Binding("delay.5m.exchange", "queue", "delay.5m.queue")
WAY_IN = Binding("orders.exchange", "exchange", "delay.5m.exchange", "order.created")
WAY_OUT = Binding("delay.exchange", "queue", "orders.queue", "order.created")
THEIR_BINDING = Binding("their.exchange", "queue", "delay.5m.queue", "their.key")
THEIR_EXCHANGE = Exchange("their.exchange")
MAX_LENGTH = (Difference("x-max-length", 10, 99),)
LOSES = "holds 3 messages that would be lost"
EXISTING = shop(
    "5m",
    exchanges=(ExchangeSpec("orders.exchange", "topic", existing=True),),
    queues=(QueueSpec("orders.queue", "quorum", existing=True),),
)


def wait_or_insist(name: str) -> str:
    """How a user gets past a refusal that time can mend."""
    return f"wait until the messages have left and run it again, or give --accept-loss {name}"


def without(live: Live, *names: str) -> Live:
    """The broker after someone deleted these exchanges or queues, and their bindings with them."""
    gone = {b for b in live.bindings if b.source in names or b.destination in names}
    return replace(
        live,
        exchanges={name: exchange for name, exchange in live.exchanges.items() if name not in names},
        queues={name: queue for name, queue in live.queues.items() if name not in names},
        bindings=live.bindings - gone,
    )


def with_queue(live: Live, queue: Queue) -> Live:
    """The broker with this queue in the place of another."""
    return replace(live, queues={**live.queues, queue.name: queue})


def with_exchange(live: Live, exchange: Exchange, *bindings: Binding) -> Live:
    """The broker with this exchange, and bindings more."""
    return replace(
        live, exchanges={**live.exchanges, exchange.name: exchange}, bindings=live.bindings | frozenset(bindings)
    )


def shown(plan: Plan) -> list[str]:
    """The changes as verbs and labels, for where only these matter."""
    return [f"{type(change).__name__} {title(change)}" for change in plan.changes]


def refused(plan: Plan) -> list[tuple[str, str]]:
    """Subjects and reasons of what a plan refuses."""
    return [(refusal.subject, refusal.reason) for refusal in plan.refusals]
