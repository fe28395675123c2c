"""A cluster in a test's hands: its members, which of them leads a queue, and when it is whole again."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from testbed import wait
from testbed.broker import RunningBroker
from testbed.cluster import private_nodes
from testbed.probe import get

SIZE = 3
WHOLE_WITHIN = 120.0
LED_WITHIN = 60.0


class Member(Protocol):
    """A node of a cluster that can be killed and started again with its data."""

    @property
    def name(self) -> str:
        """What the cluster calls it, such as rabbit@host."""

    @property
    def broker(self) -> RunningBroker:
        """Where it answers."""

    def kill(self) -> None:
        """End it as the kernel does when memory is out: nothing is said, nothing is saved."""

    def start(self) -> None:
        """Start it again with its data; returns when it answers."""

    def rabbitmqctl(self, *arguments: str) -> str:
        """Run its own command-line tool; returns what it says."""


@dataclass(frozen=True)
class Cluster:
    """Nodes that form one broker."""

    members: tuple[Member, ...]

    @property
    def broker(self) -> RunningBroker:
        """The first member, for what any of them can do while all are there."""
        return self.members[0].broker

    def urls(self, vhost: str) -> list[str]:
        """Return the AMQP addresses of all members, with this virtual host."""
        return [f"{member.broker.url.rstrip('/')}/{quote(vhost, safe='')}" for member in self.members]

    def leader(self, vhost: str, queue: str) -> Member:
        """Return the member that leads a queue, as soon as there is one that is there."""
        found = wait.until(
            lambda: self._leader(vhost, queue), LED_WITHIN, what=f"a leader of {queue} that is there", every=0.2
        )
        assert found is not None
        return found

    def _leader(self, vhost: str, queue: str) -> Member | None:
        shown = self._ask(f"/api/queues/{quote(vhost, safe='')}/{quote(queue, safe='')}") or {}
        # The figures of a queue outlive its leader by a moment; a classic queue has a node and no leader.
        name = shown.get("leader") or shown.get("node")
        running = {node["name"] for node in self._ask("/api/nodes") or () if node["running"]}
        return next((member for member in self.members if member.name == name and name in running), None)

    def _ask(self, path: str) -> Any:
        """Ask whoever answers."""
        for member in self.members:
            try:
                return get(member.broker.management_url, path, url=member.broker.url)
            except (OSError, ValueError):  # Killed, or not up yet: another one knows.
                continue
        return None

    def await_whole(self) -> None:
        """Wait until every member sees all of them running, and every quorum queue has all its replicas."""
        wait.until(self._is_whole, WHOLE_WITHIN, what="the whole cluster", every=0.2)

    def _is_whole(self) -> bool:
        try:
            return all(self._sees_all(member) for member in self.members)
        except (OSError, ValueError):
            return False

    def _sees_all(self, member: Member) -> bool:
        management_url, url = member.broker.management_url, member.broker.url
        nodes = get(management_url, "/api/nodes", url=url)
        queues = get(management_url, "/api/queues", url=url)
        is_complete = all(set(queue["online"]) == set(queue["members"]) for queue in queues if queue.get("members"))
        return is_complete and sum(bool(node["running"]) for node in nodes) == len(self.members)


@contextmanager
def private_cluster(count: int = SIZE) -> Iterator[Cluster]:
    """Run private nodes of the installed or fetched RabbitMQ as one cluster until the block ends."""
    with private_nodes(count) as nodes:
        yield Cluster(nodes)
