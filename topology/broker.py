"""What carrying out a plan asks of a broker: a live one, or one in memory."""

from collections.abc import Sequence
from typing import Protocol

from delayctl.topology.model import Binding, Exchange, Policy, Queue
from delayctl.topology.record import Record


class Broker(Protocol):
    """All that carrying out a plan asks of a broker. Calls may come from several threads."""

    def declare(self, resource: Exchange | Queue) -> None:
        """Declare an exchange or a queue."""

    def declare_at(self, queue: Queue, node: str) -> None:
        """Declare a queue on a node of the cluster; if it is replicated, that is where its leader is."""

    def bind(self, binding: Binding) -> None:
        """Make a binding."""

    def put_all(self, resources: Sequence[Exchange | Queue | Binding]) -> None:
        """Declare or bind many at once; where one is refused, some of the others were made."""

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""

    def delete_exchange(self, name: str, *, guarded: bool) -> None:
        """Delete an exchange; guarded, only while no binding begins at it."""

    def delete_queue(self, queue: Queue, *, guarded: bool) -> None:
        """Delete a queue; guarded, only while it is empty and nobody consumes."""

    def settled(self, queues: Sequence[Queue]) -> frozenset[str]:
        """Watch queues together for a moment; the names of those that hold nothing all the while, or are gone."""

    def await_cover(self, binding: Binding, policy: str) -> None:
        """Return once a policy is in force at an exchange that this binding alone leads on from; Refused where it isn't so."""

    def put_policy(self, policy: Policy) -> None:
        """Set a policy."""

    def delete_policy(self, name: str) -> None:
        """Remove a policy."""

    def write_record(self, prefix: str, record: Record) -> None:
        """Remember what was applied."""

    def count(self, queue: str) -> int:
        """How many messages a queue holds."""

    def let_pass(self) -> None:
        """Return when every message that was being routed has arrived where bindings led it."""
