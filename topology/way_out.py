"""Whether what had no way out has one by now: redrive sends it that way, and doctor advises by the same judgement. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.topology.ladder import TOP, is_step_header
from delayctl.topology.names import ANY, Names
from delayctl.topology.routing import Message, Network, route
from delayctl.topology.wording import quoted

ADD_A_ROUTE = "add the route to the file and apply it, or name a queue with --to"
_BY_HAND = "name a queue with --to, which ends the delay"


@dataclass(frozen=True, slots=True)
class Stranded:
    """A message in the queue of what had no way out, with the headers that would be sent on."""

    queue: str
    exchange: str  # That it was published to, or came out by.
    key: str
    headers: Mapping[str, object]
    is_due: bool  # Its time was up by now, as far as it says when.


@dataclass(frozen=True, slots=True)
class Way:
    """An exchange that has a way by now, the headers that lead it there, and the queues it leads to."""

    exchange: str
    headers: Mapping[str, object]
    queues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoWay:
    """What keeps a message where it is, and what would help it."""

    why: str
    fix: str


def way_out(network: Network, names: Names, lost: Stranded) -> Way | NoWay:
    """Where a message goes if it is sent once more: the same way, or by the exit where it has waited and the way is gone."""
    exchange = _exchange_now(network, names, lost)
    if exchange is None:
        fix = f"apply a file that has {lost.exchange} again; or {_BY_HAND}"
        return NoWay(f"{lost.exchange}, where it was to wait, is not there", fix)
    # What came out at the exit has waited. All else still has to: at the door of the ladder nothing has waited yet.
    headers = _without_steps(lost.headers) if exchange == names.exit() else lost.headers
    queues = route(network, exchange, Message(lost.key, headers)).queues
    if not set(queues) - {lost.queue}:
        return _no_way(exchange, names, lost)
    if lost.queue in queues:
        return NoWay("it would come back to where it is, too", f"unbind {lost.queue}, or name a queue with --to")
    return Way(exchange, headers, queues)


def _exchange_now(network: Network, names: Names, lost: Stranded) -> str | None:
    """The exchange to send it to; None where that is gone, and the message has not waited."""
    if lost.exchange in network.exchanges:
        return lost.exchange
    if names.is_gate(lost.exchange):
        return names.exit()  # Had there been a step below for it, it would have gone there.
    if not names.is_entrance(lost.exchange):
        return lost.exchange
    return names.exit() if lost.is_due else None


def _without_steps(headers: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in headers.items() if not is_step_header(name)}


def _no_way(exchange: str, names: Names, lost: Stranded) -> NoWay:
    if exchange != names.entrance(ANY):
        why = f"no route for key {quoted(lost.key)} at {exchange or 'the default exchange'}"
        return NoWay(why, ADD_A_ROUTE)
    top = lost.headers.get(TOP)
    if not isinstance(top, str):
        return NoWay(f"{exchange} takes nothing without the header {TOP}", _BY_HAND)
    fix = f"give the ladder (any) more steps in the file and apply it; or {_BY_HAND}"
    return NoWay(f"{exchange} has no step {quoted(top)} for it", fix)
