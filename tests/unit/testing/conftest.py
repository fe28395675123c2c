"""A simulated broker for every test, and what services do with it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from delayctl.consumers import Message, Outcome
from delayctl.testing import SimulatedBroker

TOPOLOGY = """
version: 1
delay:
  levels:
    1s: {}
    10s: {}
    15m: {}
    1h: {max_length: 2, overflow: reject-publish}
exchanges: {orders: {}}
queues: {plain: {}}
routes:
  - {from: orders, key: order.created, delay: 15m, to: timeouts}
  - {key: reminder, delay: 10s, to: reminders}
  - {key: reminder, delay: 1h, to: reminders}
  - {key: other, delay: 10s, to: others}
retry:
  timeouts: {levels: [1s, 10s], max: 2, park: timeouts.dlq}
"""


@pytest.fixture
def topology_file(tmp_path: Path) -> Path:
    """The file that these tests share."""
    file = tmp_path / "topology.yaml"
    file.write_text(TOPOLOGY, encoding="utf-8")
    return file


@pytest.fixture
def broker(topology_file: Path) -> Iterator[SimulatedBroker]:
    """A broker with the topology."""
    with SimulatedBroker(topology_file) as running:
        yield running


@dataclass
class Seen:
    """A handler that notes what it saw, and when, and answers as it is told."""

    broker: SimulatedBroker
    answer: Callable[[Message], Outcome] = lambda _: None
    messages: list[Message] = field(default_factory=list)
    at: list[tuple[str, str]] = field(default_factory=list)  # The time that had passed, and the text.

    def __call__(self, message: Message) -> Outcome:
        """Handle a message."""
        self.messages.append(message)
        self.at.append((str(self.broker.elapsed), message.text))
        return self.answer(message)
