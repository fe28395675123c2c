"""What explain says of a message is what RabbitMQ does with it: generated networks, declared and published to.

`make conformance` runs 500 of them on each broker; DELAYCTL_EXAMPLES says how many.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pika
from delayctl.topology.access import access_from
from delayctl.topology.arguments import exchange_arguments, queue_arguments
from delayctl.topology.journey import journey
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.model import Binding, thaw
from delayctl.topology.routing import Network
from hypothesis import HealthCheck, Phase, event, given, note, settings
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import UnroutableError

from testbed import RunningBroker
from testbed.wait import until
from tests.conftest import fresh_vhost
from tests.support.networks import Case, Publish, cases

EXAMPLES = int(os.environ.get("DELAYCTL_EXAMPLES", "15"))
CALM = 3  # Sweeps in a row that find nothing new and nothing waiting.
CALM_TO_DISAGREE = 60

Place = tuple[int, str | None, str]  # The message's number, the queue that it ended in (None: returned), its key.
Ended = Counter[Place]


def test_explain_agrees_with_the_broker(broker: RunningBroker) -> None:
    """Of every copy of every message: the same queue, with the same key, as often; returned where it was foretold."""
    with fresh_vhost(broker) as rabbit, rabbit.channel() as channel:
        numbers = itertools.count()
        management = Management(access_from(broker.url, management_url=broker.management_url), rabbit.vhost)

        @settings(
            max_examples=EXAMPLES,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases())
        def agree(case: Case) -> None:
            # A channel that knew a queue of this name as quorum breaks when it publishes to a classic one.
            with (
                channel.connection.channel() as own,
                Stage(own, management, next(numbers)).set(case.live) as (stage, network),
            ):
                own.confirm_delivery()
                foretold = _foretold(network, case)
                note(f"foretold {sorted(foretold.items(), key=repr)}")

                ended = stage.play(case, network, foretold)

                assert ended == foretold

        agree()


def _foretold(network: Network, case: Case) -> Ended:
    ended: Ended = Counter()
    for number, publish in enumerate(case.publishes):
        way = journey(network, publish.exchange, publish.message)
        assert not way.is_cut
        for end in way.ends:
            event(end.fate)
            if end.fate in ("delivered", "returned"):
                ended[number, end.queue, end.key] += 1
    return ended


@dataclass(frozen=True)
class Stage:
    """A virtual host that is set up, played on and cleared."""

    channel: BlockingChannel
    management: Management
    number: int  # Of the network; its messages carry it.

    @contextmanager
    def set(self, live: Live) -> Iterator[tuple["Stage", Network]]:
        """Declare a network, and yield it as the broker describes it; all is gone afterwards."""
        try:
            self._declare(live)
            yield self, Network.of_live(self.management.read("", live.exchanges))
        finally:
            self._clear(live)

    def _declare(self, live: Live) -> None:
        for policy in live.policies:
            self.management.put_policy(policy)
        for exchange in live.exchanges.values():
            self.channel.exchange_declare(
                exchange.name,
                exchange.type,
                durable=True,
                internal=exchange.internal,
                arguments=exchange_arguments(exchange),
            )
        for queue in live.queues.values():
            self.channel.queue_declare(queue.name, durable=True, arguments=queue_arguments(queue))
        for binding in live.bindings:
            self._bind(binding)

    def _bind(self, binding: Binding) -> None:
        arguments = {name: thaw(value) for name, value in binding.arguments}
        bind = self.channel.queue_bind if binding.kind == "queue" else self.channel.exchange_bind
        bind(binding.destination, binding.source, binding.key, arguments=arguments)

    def _clear(self, live: Live) -> None:
        for queue in live.queues:
            self.channel.queue_delete(queue)
        for exchange in live.exchanges:
            self.channel.exchange_delete(exchange)
        for policy in live.policies:
            self.management.delete_policy(policy.name)

    def play(self, case: Case, network: Network, foretold: Ended) -> Ended:
        """Publish the messages, wait until all have come to rest, and say where."""
        watch = Watch(
            self.channel, self.number, {name: queue.settings.ttl is None for name, queue in network.queues.items()}
        )
        for number, publish in enumerate(case.publishes):
            if self._is_returned(number, publish):
                watch.ended[number, None, publish.message.key] += 1
        until(lambda: watch.is_over(foretold), 60, what="rest", every=0.01)
        return watch.ended

    def _is_returned(self, number: int, publish: Publish) -> bool:
        properties = pika.BasicProperties(headers=cast(dict[str, Any], publish.message.headers))
        body = f"{self.number} {number}".encode()
        try:
            self.channel.basic_publish(publish.exchange, publish.message.key, body, properties, mandatory=True)
        except UnroutableError:
            return True
        return False


@dataclass
class Watch:
    """Takes from the queues where messages rest, until nothing moves any more."""

    channel: BlockingChannel
    number: int
    is_resting_place: Mapping[str, bool]
    ended: Ended = field(default_factory=Counter)
    calm: int = 0

    def is_over(self, foretold: Ended) -> bool:
        """Sweep once; say whether all is at rest, which takes longer to believe where it is not as foretold."""
        is_moving = [self._sweep(queue, rests=rests) for queue, rests in self.is_resting_place.items()]
        self.calm = 0 if any(is_moving) else self.calm + 1
        return self.calm >= (CALM if self.ended == foretold else CALM_TO_DISAGREE)

    def _sweep(self, queue: str, *, rests: bool) -> bool:
        """Take what is there, or see whether something waits; say whether there was anything."""
        if not rests:
            return bool(self.channel.queue_declare(queue, passive=True).method.message_count)
        is_empty = True
        for method, _, body in iter(lambda: self.channel.basic_get(queue, auto_ack=True), (None, None, None)):
            assert method is not None
            assert body is not None
            network, message = map(int, body.split())
            assert network == self.number, "a copy from an earlier network, which was not at rest after all"
            self.ended[message, queue, str(method.routing_key)] += 1
            is_empty = False
        return not is_empty
