"""The simulated RabbitMQ as a stage, with DelayPublisher and DelayConsumer as its clients."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from delayctl.publishers.known import read_topology
from delayctl.testing.simulated import SimulatedBroker

from testbed.wait import until
from tests.conformance.stage import Ability, Attempt, DeadLetter, Group, Sent
from tests.conformance.stage_rabbitmq import Script, dead_letter_queue
from tests.conformance.stage_rocketmq import LEVELS_MS

ALL_OF_IT = "6h"  # More than sixteen retries take.
AGAIN_WITHIN = 30.0


class SimulatedRabbitMq:
    """RocketMQ's levels on RabbitMQ, in virtual time."""

    can = frozenset({Ability.BOUNDED_LEVELS, Ability.RESTART})
    levels_ms = LEVELS_MS
    late_ms = 0

    def __init__(self, version: str) -> None:
        self.name = f"simulated RabbitMQ {version}"
        self._version = version

    @contextmanager
    def open(self, *groups: Group, max_length: int | None = None) -> Iterator["SimulatedRabbitMqStage"]:
        """A broker of its own."""
        script = Script(groups, self.levels_ms, lambda: broker.clock())  # noqa: PLW0108 (there is none yet)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "topology.yaml"
            file.write_text(script.topology(max_length), encoding="utf-8")
            spec = read_topology(file, {})
        with SimulatedBroker(spec, version=self._version) as broker:
            yield SimulatedRabbitMqStage(broker, script)


class SimulatedRabbitMqStage:
    """One broker, its publisher and its consumers."""

    def __init__(self, broker: SimulatedBroker, script: Script) -> None:
        self._broker, self._script = broker, script
        self._publisher = broker.publisher(rounding="down")
        handlers = {group: script.handler(group) for group in script.books.groups}
        broker.consumer(handlers, workers=1)

    @property
    def attempts(self) -> Sequence[Attempt]:
        """What handlers saw."""
        return self._script.books.attempts

    def send(self, topic: str, body: str, *, level: int = 0) -> Sent:
        """Publish."""
        return self._script.send(self._publisher, topic, body, level)

    def rest(self) -> None:
        """Let so much time pass that nothing can be left."""
        self._broker.advance(ALL_OF_IT)
        self._broker.settle()
        if not self._script.books.is_settled(lambda group: len(self.dead_letters(group))):
            raise TimeoutError(f"{ALL_OF_IT} have passed, and not all is settled")

    def dead_letters(self, group: str) -> list[DeadLetter]:
        """What lies in the parking queue."""
        found = self._broker.messages(dead_letter_queue(group))
        return [DeadLetter(message.text, message.message_id or "") for message in found]

    def restart(self) -> None:
        """Be away for a minute."""
        with self._broker.away():
            self._broker.advance("1m", wait=False)
        for group in self._script.books.groups:
            self._broker.await_consumers(group)

    def send_seen_twice(self, topic: str, body: str) -> Sent:
        """Cut the connections when the handler has the message and the broker not its word."""
        self._script.accidents[body] = self._broker.drop_connections
        sent = self.send(topic, body)
        until(lambda: len(self.attempts) == 2, AGAIN_WITHIN, what="the second delivery", every=0.01)
        return sent
