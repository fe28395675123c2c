"""A RabbitMQ to act on: AMQP for what it can do, the management API for the rest."""

import threading
import time
from collections.abc import Sequence

from delayctl.topology.access import Access
from delayctl.topology.amqp import AmqpSession, Peeked
from delayctl.topology.errors import ManagementUnavailable, NoMoreConnections, NotPermitted, Refused, StillHolds
from delayctl.topology.live import Backlog
from delayctl.topology.management import Management
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Reference
from delayctl.topology.record import Record
from delayctl.topology.wording import plural

_STATISTICS_S = 6  # A broker renews its figures every five seconds, unless told otherwise.
_LATE_FIGURES_S = 2 * _STATISTICS_S  # A queue tells them on a beat of its own, and the broker on another.
_LOOK_AGAIN_S = 0.25
_SETTLING_S = 1.0
_POLICY_S = 15
_NOT_FOUND = 404
_IN_USE = 406
_ROUTED_WITHIN_S = (
    0.2  # It takes microseconds, unless the machine gives the broker no time; nobody tells when it is over.
)


class RabbitBroker:
    """One virtual host of a live broker; a connection per thread that uses it, as far as the broker takes so many."""

    def __init__(self, access: Access, management: Management | None) -> None:
        self._access = access
        self._management = management
        self._local = threading.local()
        self._sessions: list[AmqpSession] = []
        self._first = threading.Lock()

    def __enter__(self) -> "RabbitBroker":
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            session.close()

    @property
    def _session(self) -> AmqpSession:
        if not hasattr(self._local, "session"):
            self._local.session = self._connected()
        session: AmqpSession = self._local.session
        return session

    def _connected(self) -> AmqpSession:
        """A connection of one's own; where a limit leaves no room for one more, the first of those that stand."""
        with self._first:  # The others have it to fall back on.
            if not self._sessions:
                return self._opened()
        try:
            return self._opened()
        except NoMoreConnections:
            return self._sessions[0]

    def _opened(self) -> AmqpSession:
        session = AmqpSession(self._access)
        session.open()
        self._sessions.append(session)
        return session

    def declare(self, resource: Exchange | Queue) -> None:
        """Declare an exchange or a queue."""
        self._session.put(resource)

    def declare_at(self, queue: Queue, node: str) -> None:
        """Declare a queue on a node of the cluster; if it is replicated, that is where its leader is."""
        self._needed_management().put_queue(queue, node)

    def bind(self, binding: Binding) -> None:
        """Make a binding."""
        self._session.put(binding)

    def put_all(self, resources: Sequence[Exchange | Queue | Binding]) -> None:
        """Declare or bind many at once."""
        self._session.put_all(resources)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        self._session.unbind(binding)

    def delete_exchange(self, name: str, *, guarded: bool) -> None:
        """Delete an exchange; guarded, only while no binding begins at it."""
        self._session.delete_exchange(name, if_unused=guarded)

    def delete_queue(self, queue: Queue, *, guarded: bool) -> None:
        """Delete a queue; guarded, only while it is empty and nobody consumes."""
        is_quorum = queue.settings.type == "quorum"
        if guarded and is_quorum:
            # Quorum queues know no if-empty and no if-unused: look for ourselves. The caller has unbound it.
            backlog = (
                self._brought_to_light(queue) if queue.settings.waits_between_retries else self.backlog(queue.name)
            )
            if backlog.messages or backlog.consumers:
                held = f"{plural(backlog.messages, 'message')} and {plural(backlog.consumers, 'consumer')}"
                raise StillHolds(f"queue {queue.name} has {held}", fix="run it again once it is empty")
        try:
            self._session.delete_queue(queue.name, guarded=guarded and not is_quorum)
        except Refused as error:
            if error.code == _IN_USE and self.ready(queue.name):
                raise StillHolds(error.what, fix="run it again once it is empty", code=error.code) from error
            raise

    def settled(self, queues: Sequence[Queue]) -> frozenset[str]:
        """Watch queues together for a moment; the names of those that hold nothing all the while, or are gone."""
        quiet, deadline = {queue.name for queue in queues}, time.monotonic() + _SETTLING_S
        while True:
            quiet = {name for name in quiet if not self.ready(name)}
            if not quiet or time.monotonic() > deadline:
                return frozenset(quiet)
            time.sleep(_LOOK_AGAIN_S / 2)

    def ready(self, queue: str) -> int:
        """How many messages are ready in a queue as of now; 0 where it is gone."""
        try:
            return self._session.count(queue).messages
        except Refused as error:
            if error.code != _NOT_FOUND:
                raise
            return 0

    def await_cover(self, binding: Binding, policy: str) -> None:
        """Return once a policy is in force at an exchange that this binding alone leads on from; Refused where it isn't so."""
        management, deadline = self._needed_management(), time.monotonic() + _POLICY_S
        exchange = binding.source
        beside = sorted(
            b.destination for b in management.bindings_of(exchange) if b.source == exchange and b != binding
        )
        if beside:
            raise Refused(f"{exchange} leads to {beside[0]} too", fix="remove that binding, and run it again")
        while (in_force := management.policy_of(exchange)) != policy:
            if time.monotonic() > deadline:
                fix = f"give policy {in_force} another pattern, and run it again" if in_force else "run it again"
                raise Refused(f"policy {policy} does not come into force at {exchange}", fix=fix)
            time.sleep(_LOOK_AGAIN_S)

    def put_policy(self, policy: Policy) -> None:
        """Set a policy."""
        self._needed_management().put_policy(policy)

    def delete_policy(self, name: str) -> None:
        """Remove a policy."""
        self._needed_management().delete_policy(name)

    def write_record(self, prefix: str, record: Record) -> None:
        """Remember what was applied; over AMQP alone there is no place for it."""
        if self._management:
            self._management.write_record(prefix, record)

    def count(self, queue: str) -> int:
        """How many messages a queue holds."""
        return self.backlog(queue).messages

    def let_pass(self) -> None:
        """Wait much longer than a broker takes to route a message, or the nodes of a cluster to hear of a binding."""
        time.sleep(_ROUTED_WITHIN_S)

    def backlog(self, queue: str) -> Backlog:
        """What a queue holds: ready messages and consumers as of now, all others as the management API last heard.

        Whoever has no right on a queue may not count it (RabbitMQ 4.3), nor change it: for them the last figures do.
        """
        try:
            now = self._session.count(queue)
        except NotPermitted:
            if self._management is None:
                raise
            return self._management.backlog(queue)
        if self._management is None:
            return now
        if now.messages or now.consumers:
            return Backlog(now.messages + self._management.heard_of(queue)[1], now.consumers)
        return Backlog(self._settled(self._management, queue))

    def peek(self, queue: str, most: int) -> list[Peeked]:
        """Look at the first messages of a queue and put them back."""
        return self._session.peek(queue, most)

    def _brought_to_light(self, queue: Queue) -> Backlog:
        """What a queue holds that makes messages wait: these are not ready, and figures hear of them late."""
        deadline = time.monotonic() + _LATE_FIGURES_S
        while not (backlog := self.backlog(queue.name)).messages and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        return backlog

    def _settled(self, management: Management, queue: str) -> int:
        """What a queue that looks empty may still hold; figures that are merely old get time to be renewed."""
        deadline = time.monotonic() + _STATISTICS_S
        while (count := management.heard_of(queue)[0]) and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        return count

    def version(self) -> str:
        """The broker's version, as it says on the connection."""
        return self._session.version()

    def check(self, reference: Reference) -> None:
        """Raise Refused where something that must exist does not."""
        self._session.check(reference.kind, reference.name)

    def has(self, reference: Reference) -> bool:
        """Say whether an exchange or a queue is there."""
        try:
            self.check(reference)
        except Refused as error:
            if error.code != _NOT_FOUND:
                raise
            return False
        return True

    def _needed_management(self) -> Management:
        if self._management is None:
            raise ManagementUnavailable(
                "policies can't be set over AMQP alone", fix="use settings: arguments, or the management API"
            )
        return self._management
