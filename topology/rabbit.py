"""A RabbitMQ to act on: AMQP for what it can do, the management API for the rest."""

import threading
import time

from delayctl.topology.access import Access
from delayctl.topology.amqp import AmqpSession
from delayctl.topology.errors import ManagementUnavailable, Refused
from delayctl.topology.live import Backlog
from delayctl.topology.management import Management
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Reference
from delayctl.topology.record import Record
from delayctl.topology.wording import plural

_STATISTICS_S = 6  # A broker renews its figures every five seconds, unless told otherwise.
_LOOK_AGAIN_S = 0.25


class RabbitBroker:
    """One virtual host of a live broker; a connection per thread that uses it."""

    def __init__(self, access: Access, management: Management | None) -> None:
        self._access = access
        self._management = management
        self._local = threading.local()
        self._sessions: list[AmqpSession] = []

    def __enter__(self) -> "RabbitBroker":
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._sessions:
            session.close()

    @property
    def _session(self) -> AmqpSession:
        if not hasattr(self._local, "session"):
            self._local.session = AmqpSession(self._access)
            self._sessions.append(self._local.session)
        session: AmqpSession = self._local.session
        return session

    def declare(self, resource: Exchange | Queue) -> None:
        """Declare an exchange or a queue."""
        self._session.declare(resource)

    def bind(self, binding: Binding) -> None:
        """Make a binding."""
        self._session.bind(binding)

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
            backlog = self.backlog(queue.name)
            if backlog.messages or backlog.consumers:
                held = f"{plural(backlog.messages, 'message')} and {plural(backlog.consumers, 'consumer')}"
                raise Refused(f"queue {queue.name} has {held}", fix="run it again once it is empty")
        self._session.delete_queue(queue.name, guarded=guarded and not is_quorum)

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

    def backlog(self, queue: str) -> Backlog:
        """What a queue holds: ready messages and consumers as of now, all others as the management API last heard."""
        now = self._session.count(queue)
        if self._management is None:
            return now
        if now.messages or now.consumers:
            return Backlog(now.messages + self._management.heard_of(queue)[1], now.consumers)
        return Backlog(self._settled(self._management, queue))

    def _settled(self, management: Management, queue: str) -> int:
        """What a queue that looks empty may still hold; figures that are merely old get time to be renewed."""
        deadline = time.monotonic() + _STATISTICS_S
        while (count := management.heard_of(queue)[0]) and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN_S)
        return count

    def check(self, reference: Reference) -> None:
        """Raise Refused where something that must exist does not."""
        self._session.check(reference.kind, reference.name)

    def _needed_management(self) -> Management:
        if self._management is None:
            raise ManagementUnavailable(
                "policies can't be set over AMQP alone", fix="use settings: arguments, or the management API"
            )
        return self._management
