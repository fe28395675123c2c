"""A broker in memory: the behaviour of RabbitMQ that carrying out a plan relies on, and a way to break it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from delayctl.topology.arguments import ALTERNATE_EXCHANGE
from delayctl.topology.effective import alternate_in_force
from delayctl.topology.errors import Refused
from delayctl.topology.live import Backlog, Live
from delayctl.topology.model import Binding, Exchange, Kind, Policy, Queue
from delayctl.topology.record import Record


class Died(BaseException):
    """The process that was applying is gone; nothing of ours catches it."""


VERSION = "4.3.6"  # One that is able to do all that a file may ask for.


@dataclass
class MemoryBroker:
    """One virtual host that can be changed. `watch` sees it after every call, `journal` holds the calls made."""

    exchanges: dict[str, Exchange] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    bindings: set[Binding] = field(default_factory=set)
    policies: dict[str, Policy] = field(default_factory=dict)
    operator_policies: tuple[Policy, ...] = ()
    records: dict[str, Record] = field(default_factory=dict)
    backlog: dict[str, Backlog] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)  # The nodes of queues that were declared on a certain one.
    journal: list[tuple[str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)  # Queues that were deleted together with messages.
    watch: Callable[["MemoryBroker"], None] = lambda _: None
    _breaks: dict[int, BaseException] = field(default_factory=dict)
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def holding(cls, live: Live, *, prefix: str = "") -> "MemoryBroker":
        """A broker in this state."""
        return cls(
            exchanges=dict(live.exchanges),
            queues=dict(live.queues),
            bindings=set(live.bindings),
            policies={policy.name: policy for policy in live.policies},
            operator_policies=live.operator_policies,
            records={**live.neighbours, **({} if live.record is None else {prefix: live.record})},
            backlog=dict(live.backlog),
        )

    def live(self, *, prefix: str = "") -> Live:
        """The state as it is read, every queue counted."""
        return Live(
            VERSION,
            exchanges=dict(self.exchanges),
            queues=dict(self.queues),
            bindings=frozenset(self.bindings),
            policies=tuple(self.policies[name] for name in sorted(self.policies)),
            operator_policies=self.operator_policies,
            record=self.records.get(prefix),
            neighbours={other: record for other, record in self.records.items() if other != prefix},
            backlog={name: self.backlog.get(name, Backlog(0)) for name in self.queues},
        )

    def break_at(self, call: int, error: BaseException) -> None:
        """Raise at this call, counted from 1 and from now, instead of doing it."""
        self._breaks[len(self.journal) + call] = error

    def mend(self) -> None:
        """Break no more, where a call to break at was not reached."""
        self._breaks.clear()

    def declare(self, resource: Exchange | Queue) -> None:
        """Declare an exchange or a queue; 406 where it is there and different."""
        with self._call("declare", resource.name):
            if isinstance(resource, Exchange):
                found = self.exchanges.setdefault(resource.name, resource)
                _check_equivalent(_checked_of_exchange(found), _checked_of_exchange(resource), f"exchange {found.name}")
            else:
                there = self.queues.setdefault(resource.name, resource)
                _check_equivalent(_checked_of_queue(there), _checked_of_queue(resource), f"queue {there.name}")

    def declare_at(self, queue: Queue, node: str) -> None:
        """Declare a queue, and note where."""
        self.declare(queue)
        self.places[queue.name] = node

    def bind(self, binding: Binding) -> None:
        """Make a binding; 404 where one of its ends is missing."""
        with self._call("bind", f"{binding.source} {binding.destination} {binding.key}".strip()):
            self._check_there("exchange", binding.source)
            self._check_there(binding.kind, binding.destination)
            self.bindings.add(binding)

    def put_all(self, resources: Sequence[Exchange | Queue | Binding]) -> None:
        """Declare or bind many, one after the other."""
        for resource in resources:
            if isinstance(resource, Binding):
                self.bind(resource)
            else:
                self.declare(resource)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; one that is not there is fine."""
        with self._call("unbind", f"{binding.source} {binding.destination} {binding.key}".strip()):
            self.bindings.discard(binding)

    def delete_exchange(self, name: str, *, guarded: bool) -> None:
        """Delete an exchange and its bindings; guarded, 406 while a binding begins at it."""
        with self._call("delete_exchange", name):
            if guarded and any(binding.source == name for binding in self.bindings):
                raise Refused(f"exchange '{name}' in use", code=406)
            self.exchanges.pop(name, None)
            self.bindings = {binding for binding in self.bindings if not binding.touches("exchange", name)}

    def delete_queue(self, queue: Queue, *, guarded: bool) -> None:
        """Delete a queue, its bindings and its messages; guarded, 406 while it is used or not empty."""
        with self._call("delete_queue", queue.name):
            backlog = self.backlog.get(queue.name, Backlog(0))
            if guarded and backlog.messages:
                raise Refused(f"queue '{queue.name}' not empty", code=406)
            if guarded and backlog.consumers:
                raise Refused(f"queue '{queue.name}' in use", code=406)
            if backlog.messages and queue.name in self.queues:
                self.lost.append(queue.name)
            self.queues.pop(queue.name, None)
            self.backlog.pop(queue.name, None)
            self.bindings = {binding for binding in self.bindings if not binding.touches("queue", queue.name)}

    def settled(self, queues: Sequence[Queue]) -> frozenset[str]:
        """The queues that hold nothing."""
        return frozenset(queue.name for queue in queues if not self.backlog.get(queue.name, Backlog(0)).messages)

    def await_cover(self, binding: Binding, policy: str) -> None:
        """Refused where the policy is not the one in force, or something else is bound to the exchange."""
        with self._call("await_cover", policy):
            exchange = self.exchanges[binding.source]
            alternate = alternate_in_force(exchange, self.policies.values())
            leads_to = dict(self.policies[policy].definition)[ALTERNATE_EXCHANGE]
            beside = [b for b in self.bindings if b.source == binding.source and b != binding]
            if alternate != leads_to or beside:
                raise Refused(f"{policy} does not lead round", code=406)

    def put_policy(self, policy: Policy) -> None:
        """Set a policy."""
        with self._call("put_policy", policy.name):
            self.policies[policy.name] = policy

    def delete_policy(self, name: str) -> None:
        """Remove a policy; one that is not there is fine."""
        with self._call("delete_policy", name):
            self.policies.pop(name, None)

    def write_record(self, prefix: str, record: Record) -> None:
        """Remember what was applied; an empty record is removed."""
        with self._call("write_record", prefix):
            if record == Record():
                self.records.pop(prefix, None)
            else:
                self.records[prefix] = record

    def count(self, queue: str) -> int:
        """How many messages a queue holds."""
        return self.backlog.get(queue, Backlog(0)).messages

    def ready(self, queue: str) -> int:
        """How many messages are ready in a queue; nobody takes any here, so that all are."""
        return self.count(queue)

    def let_pass(self) -> None:
        """Nothing is under way in memory."""
        with self._call("let_pass", ""):
            pass

    @contextmanager
    def _call(self, name: str, subject: str) -> Iterator[None]:
        with self._one_at_a_time:
            self.journal.append((name, subject))
            if error := self._breaks.pop(len(self.journal), None):
                raise error
            yield
            self.watch(self)

    def _check_there(self, kind: Kind, name: str) -> None:
        there = self.queues if kind == "queue" else self.exchanges
        if name not in there and not (kind == "exchange" and name.startswith("amq.")):
            raise Refused(f"no {kind} '{name}'", code=404)


def _check_equivalent(found: object, declared: object, what: str) -> None:
    if found != declared:
        raise Refused(f"{what} exists with other arguments", code=406)


def _checked_of_exchange(exchange: Exchange) -> Exchange:
    """What a second declaration is compared by: arguments that the broker does not know are not looked at."""
    return replace(exchange, extra=())


def _checked_of_queue(queue: Queue) -> Queue:
    """The same for a queue; no type given is as good as classic."""
    return replace(queue, settings=replace(queue.settings, type=queue.settings.type or "classic"), extra=())
