"""The objects of the simulated virtual host, and what a broker refuses to do with them."""

from dataclasses import replace

from delayctl.simulator.rabbitmq_asleep import MODELLED
from delayctl.simulator.rabbitmq_classic import ClassicQueue
from delayctl.simulator.rabbitmq_events import QueueExpired
from delayctl.simulator.rabbitmq_post import Post
from delayctl.simulator.rabbitmq_queue import MessageQueue
from delayctl.simulator.rabbitmq_quorum import QuorumQueue
from delayctl.topology.effective import alternate_in_force, effective
from delayctl.topology.errors import Refused
from delayctl.topology.live import Live
from delayctl.topology.model import (
    ROUTED_TYPES,
    Binding,
    Exchange,
    Policy,
    Queue,
    Settings,
    Topology,
    sorted_bindings,
)
from delayctl.topology.routing import DEFAULT_EXCHANGE, PREDEFINED, Network

_NOT_MODELLED = ("x-max-priority", "x-single-active-consumer")
_NAMES = {403: "ACCESS_REFUSED", 404: "NOT_FOUND", 406: "PRECONDITION_FAILED", 540: "NOT_IMPLEMENTED"}


def refusal(code: int, what: str) -> Refused:
    """The error that a broker answers with, by AMQP's code."""
    return Refused(f"{_NAMES[code]} - {what}", code=code)


class Objects:
    """Exchanges, queues, bindings and policies; whoever changes them makes the post forget its ways."""

    def __init__(self, post: Post, classic: type[ClassicQueue], quorum: type[QuorumQueue]) -> None:
        self._post = post
        self._classic, self._quorum = classic, quorum
        self._exchanges = {name: Exchange(name, kind) for name, kind in PREDEFINED.items()}
        self.queues: dict[str, MessageQueue] = {}
        self._bindings: set[Binding] = set()
        self._policies: dict[str, Policy] = {}
        self._operator_policies: dict[str, Policy] = {}
        post.ways.queues, post.ways.describe = self.queues, self._network
        post.on_idle = self._expire_queue

    def _network(self) -> Network:
        policies = tuple(self._policies.values())
        exchanges = {
            name: replace(exchange, alternate=alternate_in_force(exchange, policies))
            for name, exchange in self._exchanges.items()
        }
        queues = {name: queue.declared for name, queue in self.queues.items()}
        return Network(exchanges, queues, sorted_bindings(self._bindings))

    def add_all(self, described: Topology | Live) -> None:
        """Make all that a file or a broker's definitions describe."""
        if isinstance(described, Live):
            exchanges, queues = tuple(described.exchanges.values()), tuple(described.queues.values())
            bindings = Network.of_live(described).bindings
            self._operator_policies = {policy.name: policy for policy in described.operator_policies}
        else:
            known = described.existing
            exchanges = (
                *(Exchange(r.name, r.type or "topic") for r in known if r.kind == "exchange"),
                *described.exchanges,
            )
            queues = (*(Queue(r.name, Settings(type=r.type)) for r in known if r.kind == "queue"), *described.queues)
            bindings = described.bindings
        self._policies = {policy.name: policy for policy in described.policies}
        self._exchanges |= {exchange.name: exchange for exchange in exchanges}
        for queue in queues:
            self.declare_queue(queue)
        self._bindings.update(binding for binding in bindings if binding.source != DEFAULT_EXCHANGE)
        self._post.ways.forget()

    # Exchanges and bindings.

    def declare_exchange(self, exchange: Exchange) -> None:
        """Make an exchange, or make sure that it is the same."""
        known = self._exchanges.get(exchange.name)
        if known is not None and known != exchange:
            raise refusal(406, f"exchange {exchange.name!r} is there already, with other arguments")
        if known is None and exchange.name.startswith("amq."):
            raise refusal(403, f"exchange name {exchange.name!r} contains the reserved prefix amq.")
        if exchange.type not in ROUTED_TYPES:
            raise refusal(540, f"exchanges of type {exchange.type!r} are a plugin's, and not modelled")
        self._exchanges.setdefault(exchange.name, exchange)
        self._post.ways.forget()

    def delete_exchange(self, name: str) -> None:
        """Remove an exchange and the bindings at both its sides."""
        if name in PREDEFINED:
            raise refusal(403, f"exchange {name!r} can't be deleted")
        if self._exchanges.pop(name, None) is not None:
            self._drop_bindings({b for b in self._bindings if b.touches("exchange", name)})

    def bind(self, binding: Binding) -> None:
        """Add a binding between objects that are there."""
        self._check_ends(binding)
        self._bindings.add(binding)
        self._post.ways.forget()

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; none of this kind is no error."""
        self._check_ends(binding)
        self._drop_bindings({binding} & self._bindings)

    def _check_ends(self, binding: Binding) -> None:
        if binding.source == DEFAULT_EXCHANGE or (binding.kind == "exchange" and binding.destination == ""):
            raise refusal(403, "operation not permitted on the default exchange")
        if binding.source not in self._exchanges:
            raise refusal(404, f"no exchange {binding.source!r}")
        ends = self._exchanges if binding.kind == "exchange" else self.queues
        if binding.destination not in ends:
            raise refusal(404, f"no {binding.kind} {binding.destination!r}")

    def _drop_bindings(self, bindings: set[Binding]) -> None:
        self._bindings -= bindings
        self._post.ways.forget()
        for source in {binding.source for binding in bindings}:
            exchange = self._exchanges.get(source)
            is_left = exchange and exchange.auto_delete and not any(b.source == source for b in self._bindings)
            if is_left and source not in PREDEFINED:
                self.delete_exchange(source)

    def check_publish(self, name: str) -> None:
        """Refuse a publish to an exchange that is not there, or internal."""
        exchange = self._exchanges.get(name)
        if exchange is None:
            raise refusal(404, f"no exchange {name!r}")
        if exchange.internal:
            raise refusal(403, f"cannot publish to internal exchange {name!r}")

    # Queues.

    def queue(self, name: str) -> MessageQueue:
        """The queue of this name, which has to be there."""
        found = self.queues.get(name)
        if found is None:
            raise refusal(404, f"no queue {name!r}")
        return found

    def declare_queue(self, queue: Queue) -> None:
        """Make a queue, or make sure that it is the same."""
        known = self.queues.get(queue.name)
        if known is None:
            self._check_queue(queue)
            kind = self._quorum if queue.settings.type == "quorum" else self._classic
            made = self.queues[queue.name] = kind(queue, self._post)
            self._configure(made)
            self._post.ways.forget()
        elif _same_queue(known.declared) != _same_queue(queue):
            raise refusal(406, f"queue {queue.name!r} is there already, with other arguments")
        else:
            known.touch()

    def _check_queue(self, queue: Queue) -> None:
        if queue.name.startswith("amq."):
            raise refusal(403, f"queue name {queue.name!r} contains the reserved prefix amq.")
        if queue.settings.type not in (None, "classic", "quorum"):
            raise refusal(540, f"queue {queue.name!r}: the type {queue.settings.type} is not modelled")
        if queue.settings.type == "quorum" and not queue.durable:
            raise refusal(406, f"queue {queue.name!r}: a quorum queue has to be durable")
        if queue.settings.waits_between_retries and queue.settings.retry_type != MODELLED:
            raise refusal(540, f"queue {queue.name!r}: retries of what is {queue.settings.retry_type} are not modelled")
        for name, value in queue.extra:
            if name in _NOT_MODELLED and value is not False:
                raise refusal(540, f"queue {queue.name!r}: the argument {name} is not modelled")

    def delete_queue(self, name: str) -> int:
        """Remove a queue, its bindings and its messages, which are not dead-lettered; says how many were ready."""
        queue = self.queues.pop(name, None)
        if queue is None:
            return 0
        queue.idle.limit_to(None)
        for consumer in tuple(queue.consumers):
            queue.remove(consumer)
        self._drop_bindings({b for b in self._bindings if (b.kind, b.destination) == ("queue", name)})
        count = len(queue)
        queue.clear()
        return count

    def _expire_queue(self, queue: MessageQueue) -> None:
        count = self.delete_queue(queue.name)
        if self._post.is_logging:
            self._post.note(QueueExpired(queue.name, count))

    # Policies.

    def set_policy(self, policy: Policy, *, is_operator: bool) -> None:
        """Set a policy, in place of one of the same name."""
        (self._operator_policies if is_operator else self._policies)[policy.name] = policy
        self._apply_policies()

    def clear_policy(self, name: str, *, is_operator: bool) -> None:
        """Remove a policy, which has to be there."""
        policies = self._operator_policies if is_operator else self._policies
        if policies.pop(name, None) is None:
            raise refusal(404, f"no policy {name!r}")
        self._apply_policies()

    def _apply_policies(self) -> None:
        self._post.ways.forget()
        for queue in tuple(self.queues.values()):
            self._configure(queue)

    def _configure(self, queue: MessageQueue) -> None:
        policies, operator_policies = tuple(self._policies.values()), tuple(self._operator_policies.values())
        queue.configure(effective(queue.declared, policies, operator_policies).settings)


def _same_queue(queue: Queue) -> Queue:
    """A queue as it is compared: without a type it is a classic one."""
    return replace(queue, settings=replace(queue.settings, type=queue.settings.type or "classic"))
