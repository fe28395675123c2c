"""Least privilege: what each role has to be able to do, as the patterns that RabbitMQ takes.

What an operation needs, as run on RabbitMQ 3.10 and 4.3: publishing needs `write` on the exchange; consuming and purging
`read` on the queue; a binding `write` on its destination and `read` on its source; declaring and deleting `configure`,
with a dead-letter or alternate exchange also `read` on the declared object and `write` on the one named. A passive
declaration needs nothing on 3.10, and on 4.3 any of the three rights on the object.
"""

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from delayctl.topology.former import telltales
from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.pattern import exact_pattern
from delayctl.topology.spec import GrantSpec, Role, Spec

Verb = Literal["configure", "write", "read"]
VERBS: tuple[Verb, ...] = ("configure", "write", "read")
DEFAULT_EXCHANGE = "amq.default"  # What permissions call the exchange that has no name.
OPERATOR_TAG = "policymaker"  # For policies, and for the record of what was applied.
VERIFIER_TAG = "management"  # To look at objects and figures, and to change none.
ADMINISTRATOR = "administrator"
_STRANGER = "some.other.object"  # A name that nobody has: whoever may touch it may touch anything.


@dataclass(frozen=True, slots=True)
class Needs:
    """The names that a role has to reach, exchanges and queues alike: permissions don't tell them apart."""

    configure: frozenset[str] = frozenset()
    write: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rights:
    """The three patterns of a user in a virtual host."""

    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True)
class Lack:
    """Objects that a user of the file has to reach and may not; `pattern` is None for a user without any rights here."""

    user: str
    role: Role
    verb: Verb
    names: tuple[str, ...]
    pattern: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Surplus:
    """What a user may reach beyond its role.

    `names` are objects that are there; `is_open` says that the pattern also takes names that nobody has yet, and
    `is_readable` that it could be compared at all.
    """

    user: str
    role: Role
    verb: Verb
    names: tuple[str, ...]
    pattern: str
    line: int
    is_open: bool = False
    is_readable: bool = True


def rights_for(grant: GrantSpec, spec: Spec, topology: Topology) -> Rights:
    """The patterns that let a user do its role's work and nothing else."""
    needs = needs_of(grant, spec, topology)
    return Rights(exact_pattern(needs.configure), exact_pattern(needs.write), exact_pattern(needs.read))


def tags_for(role: Role) -> tuple[str, ...]:
    """The tags that a role needs for the management API."""
    return {"operator": (OPERATOR_TAG,), "verifier": (VERIFIER_TAG,)}.get(role, ())


def needs_of(grant: GrantSpec, spec: Spec, topology: Topology) -> Needs:
    """The names that a user has to reach."""
    match grant.role:
        case "publisher":
            return Needs(write=frozenset(grant.only) or _published_to(spec, topology))
        case "consumer":
            return _consumer(frozenset(grant.only) or _consumed(spec), spec, topology)
        case "operator":
            return _operator(topology)
        case "verifier":
            return _verifier(topology)
        case _:
            assert_never(grant.role)


def _published_to(spec: Spec, topology: Topology) -> frozenset[str]:
    """The entrances of levels and ladder, the exit for what is due already, and the business exchanges that routes begin at."""
    internal = {exchange.name for exchange in spec.exchanges if exchange.internal}  # Nobody can publish to these.
    own = {topology.exit, *(level.entrance for level in topology.levels)} if topology.waits else set()
    own |= {topology.ladder.entrance} if topology.ladder else set()
    return frozenset(own) | {route.source for route in spec.routes if route.source} - internal


def _consumed(spec: Spec) -> frozenset[str]:
    """The queues that routes and retries end at."""
    targets = {target.name for route in spec.routes for target in route.targets if target.kind == "queue"}
    return frozenset(targets | {retry.queue for retry in spec.retries})


def _consumer(queues: frozenset[str], spec: Spec, topology: Topology) -> Needs:
    entrances = {level.name: level.entrance for level in topology.levels}
    retries = [retry for retry in spec.retries if retry.queue in queues]
    # A key of its own leads from the exit to each parking queue. Write on the queue itself is for looking whether it is
    # there, which 4.3 refuses without any right on it; to bind it, one would have to read an exchange.
    parks = {name for retry in retries for name in (retry.park, topology.exit)}
    cancelled = {Names(spec.prefix).cancellations()} if spec.cancel and spec.has_delays else set()
    waits = {entrances[wait] for retry in retries for wait in retry.waits}
    return Needs(write=frozenset(parks | waits), read=queues | cancelled)


def _operator(topology: Topology) -> Needs:
    with_alternate = [exchange for exchange in topology.exchanges if exchange.alternate is not None]
    with_dead_letters = [queue for queue in topology.queues if queue.settings.dead_letter_exchange is not None]
    # While a delay queue is changed, messages wait in the next one.
    rounds = [Names(topology.prefix).next(wait.name) for wait in topology.waits]
    next_queues, next_entrances = ({name.queue for name in rounds}, {name.entrance for name in rounds})
    # Between ways that change their destination these stand for a moment: made, bound at both ends, with an alternate.
    toggle = frozenset(Names(topology.prefix).toggle() if topology.bindings else ())
    # Over AMQP alone it looks whether a level had another number of queues; on 4.3 that takes a right, and this one binds alone.
    looked_for = {former.name for level in topology.levels for former in telltales(level, topology.prefix)}
    return Needs(
        configure=_made(topology) | {Names(topology.prefix).lock()} | next_queues | next_entrances | toggle,
        write=toggle.union(
            {binding.destination for binding in topology.bindings}
            | next_queues
            | looked_for
            | {exchange.alternate or DEFAULT_EXCHANGE for exchange in with_alternate}
            | {queue.settings.dead_letter_exchange or DEFAULT_EXCHANGE for queue in with_dead_letters}
        ),
        read=toggle.union(
            {binding.source for binding in topology.bindings}
            | next_queues
            | next_entrances
            | {exchange.name for exchange in with_alternate}
            | {queue.name for queue in with_dead_letters}
        ),
    )


def _verifier(topology: Topology) -> Needs:
    """The queue that catches canaries, bound to the exit; and to publish to every delay, but to no route."""
    catcher = Names(topology.prefix).verify_queue()
    if not topology.waits:
        return Needs()
    ladder = {topology.ladder.entrance, *topology.gates} if topology.ladder else set[str]()
    entrances = {part.entrance for level in topology.levels for part in (level, *level.parts)}
    return Needs(
        configure=frozenset({catcher}),
        write=frozenset({catcher, topology.exit, *entrances, *ladder}),
        read=frozenset({catcher, topology.exit}),
    )


def _made(topology: Topology) -> frozenset[str]:
    return frozenset(exchange.name for exchange in topology.exchanges) | {queue.name for queue in topology.queues}


def lacking(spec: Spec, topology: Topology, found: Iterable[Mapping[str, Any]]) -> tuple[Lack, ...]:
    """What the users under `permissions:` lack, in the order of the file; () when every one of them can work.

    `found` is what `GET /api/vhosts/<vhost>/permissions` answers: mappings with user, configure, write and read.
    There is one Lack per user and verb. A pattern that only Erlang can read is given the benefit of the doubt.
    """
    by_user = {entry["user"]: entry for entry in found}
    return tuple(
        lack
        for grant in spec.grants
        for lack in _lacks(grant, needs_of(grant, spec, topology), by_user.get(grant.user))
    )


def _lacks(grant: GrantSpec, needs: Needs, entry: Mapping[str, Any] | None) -> Iterator[Lack]:
    for verb in VERBS:
        needed: frozenset[str] = getattr(needs, verb)
        pattern = None if entry is None else str(entry[verb])
        names = tuple(sorted(name for name in needed if pattern is None or allows(pattern, name) is False))
        if names:
            yield Lack(grant.user, grant.role, verb, names, pattern, grant.line)


def surplus(
    spec: Spec, topology: Topology, found: Iterable[Mapping[str, Any]], there: Collection[str] = ()
) -> tuple[Surplus, ...]:
    """What the users under `permissions:` may do beyond their roles; `there` are the names of what is on the broker."""
    by_user = {entry["user"]: entry for entry in found}
    known = _made(topology) | {DEFAULT_EXCHANGE, *there}
    return tuple(
        more
        for grant in spec.grants
        if grant.user in by_user
        for more in _surplus(grant, needs_of(grant, spec, topology), by_user[grant.user], known)
    )


def _surplus(grant: GrantSpec, needs: Needs, entry: Mapping[str, Any], known: Collection[str]) -> Iterator[Surplus]:
    for verb in VERBS:
        needed: frozenset[str] = getattr(needs, verb)
        pattern = str(entry[verb])
        if pattern == exact_pattern(needed):
            continue
        if allows(pattern, _STRANGER) is None:
            yield Surplus(grant.user, grant.role, verb, (), pattern, grant.line, is_readable=False)
            continue
        names = tuple(sorted(name for name in known if name not in needed and allows(pattern, name)))
        is_open = any(allows(pattern, name) for name in _made_up(needed) if name not in needed)
        if names or is_open:
            yield Surplus(grant.user, grant.role, verb, names, pattern, grant.line, is_open=is_open)


def _made_up(needed: Iterable[str]) -> Iterator[str]:
    """Names that nobody has, close to those that are needed and far from them."""
    yield _STRANGER
    for name in needed:
        yield from (f"{name}.more", f"more.{name}")


def allows(pattern: str, name: str) -> bool | None:
    """Say whether a permission pattern takes a name, as the broker does it; None where only Erlang could say."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # `[[:alpha:]]` means something else to Python.
            # An empty pattern stands for ^$, and the broker compares bytes.
            return re.search((pattern or "^$").encode(), name.encode()) is not None
    except (re.error, FutureWarning):
        return None
