"""Where messages go, worked out by the one routing function and remembered where nothing but the key decides."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from delayctl.simulator.rabbitmq_message import Headers, Publication
from delayctl.topology.key_index import IndexedNetwork
from delayctl.topology.model import CONSISTENT_HASH
from delayctl.topology.routing import Message as Routable
from delayctl.topology.routing import Network, Routed, route

if TYPE_CHECKING:
    from delayctl.simulator.rabbitmq_queue import MessageQueue

MAX_KNOWN = 100_000  # Keys that differ in every message would fill the memory otherwise.


class Way:
    """The queues behind an exchange for one key, and the answer that a publisher gets if none refuses.

    `queue` is the only one, where there is one and the key alone decides; `entry` is the same where publishers may go there.
    """

    __slots__ = ("entry", "publication", "queue", "queues", "sees_headers")

    def __init__(self, queues: "tuple[MessageQueue, ...]", *, is_open: bool, sees_headers: bool) -> None:
        self.queues = queues
        self.queue = queues[0] if len(queues) == 1 and not sees_headers else None
        self.publication = Publication(tuple(queue.name for queue in queues))
        self.entry = self.queue if is_open else None
        self.sees_headers = sees_headers  # Or at the id: this is the way of a message that has neither.


class Keys(dict[str, Way]):
    """The ways behind one exchange by key, of messages without headers; looked for when first asked for."""

    def __init__(self, exchange: str, find: "Callable[[str, str], Way]") -> None:
        super().__init__()
        self._exchange, self._find = exchange, find

    def __missing__(self, key: str) -> Way:
        way = self._find(self._exchange, key)
        if len(self) >= MAX_KNOWN:
            self.clear()
        self[key] = way
        return way


class Ways(dict[str, Keys]):
    """The ways through one network, by exchange and then by key: two look-ups take half the time of one with both."""

    def __init__(self) -> None:
        super().__init__()
        self.describe: Callable[[], Network] = lambda: Network({}, {}, ())
        self.queues: Mapping[str, MessageQueue] = {}
        self._network: IndexedNetwork | None = None

    def forget(self) -> None:
        """Forget all ways, for the network has changed."""
        self.clear()
        self._network = None

    @property
    def network(self) -> Network:
        """The network as it is now."""
        if self._network is None:
            self._network = IndexedNetwork.of(self.describe())
        return self._network

    def __missing__(self, exchange: str) -> Keys:
        keys = Keys(exchange, self._find)
        if exchange in self.network.exchanges:  # Names that differ in every message would fill the memory otherwise.
            self[exchange] = keys
        return keys

    def _find(self, exchange: str, key: str) -> Way:
        return self._way(route(self.network, exchange, Routable(key)))

    def find_by_headers(self, exchange: str, key: str, headers: Headers, id: str | None = None) -> Way:
        """The way of a message with headers, or with an id."""
        return self._way(route(self.network, exchange, Routable(key, headers, id)))

    def _way(self, routed: Routed) -> Way:
        exchanges = self.network.exchanges
        passed = [exchanges[hop.exchange] for hop in routed.hops if hop.exchange in exchanges]
        first = exchanges.get(routed.hops[0].exchange)
        return Way(
            tuple(self.queues[name] for name in routed.queues),
            is_open=first is not None and not first.internal,
            sees_headers=any(exchange.type in ("headers", CONSISTENT_HASH) for exchange in passed),
        )
