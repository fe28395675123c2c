"""SimulatedBroker: a RabbitMQ for tests, in this process and in virtual time, with clients at hand and nothing hidden."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from delayctl.consumers.consumer import DelayConsumer
from delayctl.consumers.treatment import Handler
from delayctl.publishers.known import read_topology
from delayctl.publishers.publisher import DelayPublisher
from delayctl.simulator.clock import VirtualClock
from delayctl.simulator.rabbitmq import Broker
from delayctl.testing.asserted import Asserted
from delayctl.testing.clients import Clients
from delayctl.testing.insight import Insight
from delayctl.testing.node import Node
from delayctl.testing.options import (
    Span,
    check_count,
    check_patience,
    check_topology,
    check_version,
    milliseconds,
    started_at,
)
from delayctl.testing.rest import refuse_in_handler
from delayctl.testing.troubled import Troubled
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec

START = datetime(2000, 1, 1, tzinfo=UTC)  # Any time will do, as long as it is the same in every run.


class SimulatedBroker(Insight, Troubled):
    """A RabbitMQ that listens on loopback, and whose time passes only when it is told to.

    >>> with SimulatedBroker("topology.yaml") as broker:
    ...     broker.publish("order 4711", key="order.created", delay="15m")
    ...     broker.advance("15m")
    ...     broker.messages("orders.timeout.queue")
    """

    def __init__(
        self,
        topology: str | Path | Spec | Topology | None = None,
        *,
        values: Mapping[str, object] | None = None,
        version: str = "4.3",
        username: str = "guest",
        password: str = "guest",  # noqa: S107 (as every RabbitMQ has it)
        start: datetime = START,
        in_turn: bool = True,
        patience_s: float = 10.0,
    ) -> None:
        """Hold what a topology describes, and listen.

        `version` is the RabbitMQ that is imitated, `start` the time that it is. `in_turn` hands out one message at a
        time to all consumers together, so that every run is the same; without, they get as many as they ask for.
        `patience_s` is how long, in real time, clients may take to deal with what they got.
        """
        check_topology(topology)
        check_version(version)
        check_patience(patience_s)
        start_ms = started_at(start)
        found = read_topology(topology, values or {}) if isinstance(topology, str | Path) else topology
        self._spec = found if isinstance(found, Spec) else None
        self._topology = expand(found) if isinstance(found, Spec) else found
        self._patience_s = patience_s
        self._clients = Clients()
        self._own: DelayPublisher | None = None
        self._asserted = Asserted()
        self._is_closed = False
        clock = VirtualClock()
        clock.set_wall(start_ms)
        self._node = Node(
            Broker(self._topology, clock=clock, version=version),
            clock,
            vhost=(self._spec and self._spec.vhost) or "/",
            login=(username, password),
            version=version,
            in_turn=in_turn,
            patience_s=patience_s,
            retried=frozenset(retry.queue for retry in self._spec.retries) if self._spec else frozenset(),
        )

    def __enter__(self) -> "SimulatedBroker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._end()
        except Exception:
            if error is None:  # Otherwise what went wrong first says more.
                raise
        if error is None:
            self._asserted.check()

    def close(self) -> None:
        """End every fault, end the clients that were made here, and listen no more.

        Raises the assertion that failed in a handler, where `advance` and `settle` have not.
        """
        self._end()
        self._asserted.check()

    def _end(self) -> None:
        self._is_closed = True
        self._node.heal()
        try:
            self._clients.close()
        finally:
            self._node.close()
        self._node.check()

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return self._node.url

    # Time.

    @property
    def now(self) -> datetime:
        """The time that it is."""
        return self._node.now()

    @property
    def elapsed(self) -> Duration:
        """How much time has passed."""
        return Duration(self._node.time.now)

    @property
    def clock(self) -> Callable[[], int]:
        """The clock for DelayPublisher and DelayConsumer: milliseconds since 1970."""
        return self._node.wall

    def advance(self, by: Span, *, wait: bool = True) -> None:
        """Let time pass, step by step.

        Before each step clients finish what they have begun, so that what they publish is published at the right time.
        Raises NotAtRest where they don't; without `wait`, time passes all the same. Raises what a handler asserts.
        """
        self._check_open()
        refuse_in_handler()
        span = milliseconds(by)
        if wait:
            self.settle()
        self._node.advance(span, self.settle if wait else None)
        self._asserted.check()

    def settle(self) -> None:
        """Wait until clients have dealt with all that they got; no time passes. Raises what a handler asserts."""
        self._check_open()
        self._node.settle(self._pending, self._asserted.check)

    def _check_open(self) -> None:
        if self._is_closed:
            raise DelayctlError(
                "the simulated broker is closed",
                fix="use it inside its with block, or before its test ends; messages and log can be read later too",
            )

    def _pending(self) -> int:
        return self._node.awaited(self._clients.unanswered)

    # Clients.

    def publisher(self, **options: Any) -> DelayPublisher:
        """A publisher to this broker, closed at the end; `options` are those of DelayPublisher."""
        self._check_open()
        defaults: dict[str, Any] = {"topology": self._known("knows no delays to publish to"), "clock": self.clock}
        return self._clients.add(DelayPublisher(self.url, **(defaults | options)))

    def publish(self, body: bytes | str, **how: Any) -> str:
        """Publish as DelayPublisher.publish does, and wait for the broker's word; gives the message id."""
        self._check_open()
        if self._own is None:
            self._own = self.publisher()
        return self._own.publish(body, **how).result(self._patience_s)

    def consumer(self, handlers: Mapping[str, Handler], **options: Any) -> DelayConsumer:
        """A consumer of these queues, at work until the end; `options` are those of DelayConsumer."""
        self._known("has no queues to consume")
        if self._spec is None:
            raise BadOption("a consumer needs the topology as a file or a Spec", fix="make the broker with one")
        defaults: dict[str, Any] = {"topology": self._spec, "clock": self.clock}
        consumer = DelayConsumer(self.url, **(defaults | options))
        for queue, handler in handlers.items():
            consumer.handle(queue, handler)
        return self.run(consumer)

    def run(self, consumer: DelayConsumer) -> DelayConsumer:
        """Run a consumer until the end, in a thread of its own; returns when it consumes."""
        self._check_open()
        for queue in consumer.queues:
            self._check_queue(queue)
        consumer.watch(lambda _, error: self._asserted.note(error))
        expected = self._consumers() + len(consumer.queues)
        self._clients.start(consumer, lambda: self._consumers() >= expected, self._patience_s)
        return consumer

    def await_consumers(self, queue: str, count: int = 1) -> None:
        """Wait until so many consume a queue, such as those that come again after their connection was cut."""
        self._check_open()
        check_count("the number of consumers", count)
        if self._topology is not None:  # Otherwise it may be that a service has yet to declare it.
            self._check_queue(queue)
        deadline = time.monotonic() + self._patience_s
        with self._node.lock:
            while self._consumers(queue) != count:
                if not self._node.lock.wait(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError(f"{queue} has {self._consumers(queue)} consumers, and not {count}")

    def _consumers(self, queue: str | None = None) -> int:
        with self._node.lock:
            return sum(queue in (None, seat.queue) for seat in self._node.host.seats)
