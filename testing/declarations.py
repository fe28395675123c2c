"""Exchanges, queues and bindings as clients declare and delete them; refusals as RabbitMQ words them."""

from typing import Any

from delayctl.testing.equivalence import check_arguments, check_exchange, check_queue
from delayctl.testing.host import Host
from delayctl.testing.refusals import (
    ACCESS_REFUSED,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    ChannelRefusal,
    ConnectionRefusal,
)
from delayctl.testing.session import Session
from delayctl.testing.wire import plain
from delayctl.topology.arguments import split_arguments, split_exchange_arguments
from delayctl.topology.model import ROUTED_TYPES, Binding, Exchange, Kind, Queue, freeze_arguments
from pika import spec
from pika.amqp_object import Method

_RESERVED = "amq."


def declare(host: Host, session: Session, method: Method) -> Method:
    """Do what a method of the classes exchange and queue asks, and give the answer."""
    match method:
        case spec.Exchange.Declare():
            _declare_exchange(host, method)
            return spec.Exchange.DeclareOk()
        case spec.Exchange.Delete():
            _delete_exchange(host, method)
            return spec.Exchange.DeleteOk()
        case spec.Exchange.Bind():
            host.model.bind(_checked(host, _binding("exchange", method.destination or "", method)))
            return spec.Exchange.BindOk()
        case spec.Exchange.Unbind():
            _unbind(host, _binding("exchange", method.destination or "", method))
            return spec.Exchange.UnbindOk()
        case spec.Queue.Bind():
            host.may_use(session, method.queue)
            host.model.bind(_checked(host, _binding("queue", method.queue, method)))
            return spec.Queue.BindOk()
        case spec.Queue.Unbind():
            _unbind(host, _binding("queue", method.queue, method))
            return spec.Queue.UnbindOk()
        case spec.Queue.Declare():
            return _declare_queue(host, session, method)
        case spec.Queue.Purge():
            return spec.Queue.PurgeOk(host.model.purge(host.may_use(session, method.queue)))
        case spec.Queue.Delete():
            return spec.Queue.DeleteOk(_delete_queue(host, session, method))
        case _:
            raise ConnectionRefusal(NOT_IMPLEMENTED, f"{method.NAME} is not simulated")


# Exchanges.


def _declare_exchange(host: Host, method: spec.Exchange.Declare) -> None:
    name = _not_default(method.exchange)
    found = host.exchanges.get(name)
    if method.passive and found is None:
        raise host.missing("exchange", name)
    if method.passive:
        return
    alternate, extra = split_exchange_arguments(_arguments(method))
    wanted = Exchange(name, method.type, alternate, method.durable, method.auto_delete, method.internal, extra)
    if found is None:
        _not_reserved("exchange", name)
        if wanted.type not in ROUTED_TYPES:
            raise host.unknown_type(wanted.type)
        host.model.declare_exchange(wanted)
    else:
        check_exchange(found, wanted, host.vhost)


def _delete_exchange(host: Host, method: spec.Exchange.Delete) -> None:
    name = _not_default(method.exchange)
    if name.startswith(_RESERVED):
        text = f"deletion of system exchange '{name}' in vhost '{host.vhost}' not allowed"
        raise ChannelRefusal(ACCESS_REFUSED, text)
    if name not in host.exchanges:
        return
    if method.if_unused and any(binding.source == name for binding in host.bindings):
        raise ChannelRefusal(PRECONDITION_FAILED, f"exchange '{name}' in vhost '{host.vhost}' in use")
    host.model.delete_exchange(name)


# Bindings.


def _binding(kind: Kind, destination: str, method: Any) -> Binding:
    source = method.source if kind == "exchange" else method.exchange
    return Binding(source, kind, destination, method.routing_key or "", freeze_arguments(_arguments(method)))


def _checked(host: Host, binding: Binding) -> Binding:
    for name in (binding.source, *([binding.destination] if binding.kind == "exchange" else [])):
        _not_default(name)
        if name not in host.exchanges:
            raise host.missing("exchange", name)
    return binding


def _unbind(host: Host, binding: Binding) -> None:
    _not_default(binding.source)
    if binding in host.bindings:  # What is not there need not be taken away.
        host.model.unbind(binding)


# Queues.


def _declare_queue(host: Host, session: Session, method: spec.Queue.Declare) -> Method:
    name = method.queue or host.new_name("gen-")
    found = host.queues.get(name)
    if found is None and method.passive:
        raise host.missing("queue", name)
    if found is None:
        if method.queue:
            _not_reserved("queue", name)
        host.model.declare_queue(check_arguments(_queue(name, method), host.vhost))
        if method.exclusive:
            host.owners[name] = session
    else:
        owner = host.owners.get(name)
        host.check_owner(session, name, owner)
        if not method.passive:
            _check_again(host, session, found.declared, method)
    consumers = sum(seat.queue == name for seat in host.seats)
    return spec.Queue.DeclareOk(name, host.model.count(name).ready, consumers)


def _check_again(host: Host, session: Session, found: Queue, method: spec.Queue.Declare) -> None:
    check_queue(found, _queue(found.name, method), host.vhost)
    if method.exclusive != (host.owners.get(found.name) is session):
        raise host.locked(found.name)


def _queue(name: str, method: spec.Queue.Declare) -> Queue:
    settings, extra = split_arguments(_arguments(method))
    return Queue(name, settings, method.durable, method.auto_delete, extra)


def _delete_queue(host: Host, session: Session, method: spec.Queue.Delete) -> int:
    if method.queue not in host.queues:
        return 0
    name = host.may_use(session, method.queue)
    if method.if_unused and any(seat.queue == name for seat in host.seats):
        raise ChannelRefusal(PRECONDITION_FAILED, f"queue '{name}' in vhost '{host.vhost}' in use")
    if method.if_empty and host.model.count(name).ready:
        raise ChannelRefusal(PRECONDITION_FAILED, f"queue '{name}' in vhost '{host.vhost}' not empty")
    return host.delete_queue(name)


# Names.


def _arguments(method: Any) -> dict[str, object]:
    found: dict[str, object] = plain(method.arguments or {})
    return found


def _not_default(exchange: str | None) -> str:
    if not exchange:
        raise ChannelRefusal(ACCESS_REFUSED, "operation not permitted on the default exchange")
    return exchange


def _not_reserved(kind: str, name: str) -> None:
    if name.startswith(_RESERVED):
        raise ChannelRefusal(ACCESS_REFUSED, f"{kind} name '{name}' contains reserved prefix 'amq.*'")
