"""Where messages of a topology wait right now: by the file, and in what goes or stands in for a queue that is changed."""

from dataclasses import dataclass

from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.status import wait_name, waiting_queues


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queue that messages wait in, and what people call it."""

    queue: str
    name: str  # Of the level, the shard, the step, or of what leads round one; else the queue's own.
    ttl: Duration | None
    is_own: bool  # It comes out of the exit of the topology.

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it is meant by: `20s.1.next` is of the shard `20s.1`, and that of the level `20s`."""
        if not self.is_own:
            return (self.name,)
        words = self.name.split(".")  # No level has a dot in its own name.
        return tuple(".".join(words[:count]) for count in range(len(words), 0, -1))


def waiting_in(desired: Topology, live: Live) -> tuple[Waiting, ...]:
    """Every place that messages may wait in; with an empty `live`, as far as the file tells."""
    return tuple(
        Waiting(queue, name, _ttl(queue, desired, live), is_own)
        for queue in waiting_queues(desired, live)
        for name, is_own in (wait_name(queue, desired),)
        if not _is_between(queue, name, desired, live)
    )


def _is_between(queue: str, name: str, desired: Topology, live: Live) -> bool:
    """Say whether a queue is gone for the moment in which it is declared anew: what comes waits in the next one."""
    return queue not in live.queues and Names(desired.prefix).next(name).queue in live.queues


def _ttl(queue: str, desired: Topology, live: Live) -> Duration | None:
    if found := live.queues.get(queue):
        return effective(found, live.policies, live.operator_policies).settings.ttl
    wanted = next((each for each in desired.queues if each.name == queue), None)
    return effective(wanted, desired.policies, ()).settings.ttl if wanted else None
