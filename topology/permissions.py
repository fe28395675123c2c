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

from delayctl.topology.model import Topology
from delayctl.topology.names import Names
from delayctl.topology.pattern import exact_pattern
from delayctl.topology.spec import GrantSpec, Role, Spec

Verb = Literal["configure", "write", "read"]
VERBS: tuple[Verb, ...] = ("configure", "write", "read")
DEFAULT_EXCHANGE = "amq.default"  # What permissions call the exchange that has no name.
OPERATOR_TAG = "policymaker"  # For policies, and for the record of what was applied.
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
    return (OPERATOR_TAG,) if role == "operator" else ()


def needs_of(grant: GrantSpec, spec: Spec, topology: Topology) -> Needs:
    """The names that a user has to reach."""
    match grant.role:
        case "publisher":
            return Needs(write=frozenset(grant.only) or _published_to(spec, topology))
        case "consumer":
            return _consumer(frozenset(grant.only) or _consumed(spec), spec, topology)
        case "operator":
            return _operator(topology)
        case _:
            assert_never(grant.role)


def _published_to(spec: Spec, topology: Topology) -> frozenset[str]:
    """The entrances, the exit for what is due already, and the business exchanges that routes begin at."""
    internal = {exchange.name for exchange in spec.exchanges if exchange.internal}  # Nobody can publish to these.
    own = topology.entrances | {topology.exit} if topology.levels else frozenset()
    return own | {route.source for route in spec.routes if route.source} - internal


def _consumed(spec: Spec) -> frozenset[str]:
    """The queues that routes and retries end at."""
    targets = {target.name for route in spec.routes for target in route.targets if target.kind == "queue"}
    return frozenset(targets | {retry.queue for retry in spec.retries})


def _consumer(queues: frozenset[str], spec: Spec, topology: Topology) -> Needs:
    entrances = {level.name: level.entrance for level in topology.levels}
    retries = [retry for retry in spec.retries if retry.queue in queues]
    # Nothing leads to a parking queue but the default exchange. Write on the queue itself is for looking whether it is
    # there, which 4.3 refuses without any right on it; to bind it, one would have to read an exchange.
    parks = {name for retry in retries for name in (retry.park, DEFAULT_EXCHANGE)}
    return Needs(write=frozenset(parks | {entrances[wait] for retry in retries for wait in retry.waits}), read=queues)


def _operator(topology: Topology) -> Needs:
    with_alternate = [exchange for exchange in topology.exchanges if exchange.alternate is not None]
    with_dead_letters = [queue for queue in topology.queues if queue.settings.dead_letter_exchange is not None]
    return Needs(
        configure=_made(topology) | {Names(topology.prefix).lock()},
        write=frozenset(
            {binding.destination for binding in topology.bindings}
            | {exchange.alternate or DEFAULT_EXCHANGE for exchange in with_alternate}
            | {queue.settings.dead_letter_exchange or DEFAULT_EXCHANGE for queue in with_dead_letters}
        ),
        read=frozenset(
            {binding.source for binding in topology.bindings}
            | {exchange.name for exchange in with_alternate}
            | {queue.name for queue in with_dead_letters}
        ),
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
