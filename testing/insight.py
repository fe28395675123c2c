"""What a test sees of a simulated broker: its messages, and all that happened."""

from delayctl.consumers.message import Message
from delayctl.simulator.rabbitmq import Broker, Event
from delayctl.testing.contents import to_message
from delayctl.testing.node import Node
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.model import Topology
from delayctl.topology.wording import did_you_mean, quoted

_WITH_ONE = (
    'make it with one: SimulatedBroker("topology.yaml"); for delay_broker, name the file in the configuration of '
    "pytest: delay_topology = topology.yaml"
)


class Insight:
    """A broker that hides nothing, open or closed."""

    _node: Node
    _topology: Topology | None

    def messages(self, queue: str) -> list[Message]:
        """What is ready in a queue, the head first; it stays there."""
        with self._node.lock:
            self._check_queue(queue)
            return [to_message(delivery) for delivery in self._node.model.peek(queue)]

    def waiting(self, level: str | Duration) -> list[Message]:
        """What waits at a level, the next to leave first; the level is named, or told by how long it is.

        A step of the ladder is named as its queue is, such as any.05. Of a level with several queues, one comes after the other.
        """
        levels = self._known("has no levels at which anything waits").wholes
        name, span = str(level), _duration(level)
        for each in sorted(levels, key=lambda each: each.name != name):  # A name comes before a length.
            if name == each.name or span == each.ttl:
                return [message for queue in each.queues for message in self.messages(queue)]
        names = [each.name for each in levels]
        raise BadOption(
            f"there is no level {quoted(name)}{did_you_mean(name, names)}", fix=f"use one of: {', '.join(names)}"
        )

    @property
    def log(self) -> list[tuple[int, Event]]:
        """What happened on the broker, and how many milliseconds after the start.

        Within one millisecond it is ordered by message: which of two connections the broker hears first is chance.
        """
        with self._node.lock:
            return sorted(self._node.model.log, key=lambda entry: (entry[0], getattr(entry[1], "message", 0)))

    def log_text(self, last: int | None = None) -> str:
        """The log for people to read; the last lines only, where so many are given."""
        log = self.log
        lines = [f"{Duration(at)!s:>14}  {event}" for at, event in log[-last if last else 0 :]]
        return "\n".join(lines) or "nothing happened"

    @property
    def model(self) -> Broker:
        """The model itself, to declare and publish without a client; not while clients are busy: see `settle`."""
        return self._node.model

    def _known(self, without: str) -> Topology:
        if self._topology is None:
            raise BadOption(f"the simulated broker was made without a topology: it {without}", fix=_WITH_ONE)
        return self._topology

    def _check_queue(self, name: str) -> None:
        with self._node.lock:
            known = self._node.host.queues
            if name not in known:
                raise BadOption(
                    f"there is no queue {quoted(name)}{did_you_mean(name, known)}",
                    fix="name one that the topology describes, or declare it",
                )


def _duration(level: str | Duration) -> Duration | None:
    if isinstance(level, Duration):
        return level
    try:
        return Duration.parse(level)
    except ValueError:
        return None  # A level may have any name.
