"""Who consumes from a delay takes out what shall arrive later: whether a queue is one, and what is said then."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click
from delayctl.cli.carry_out import ask
from delayctl.topology.access import Access, quoted
from delayctl.topology.arguments import policy_settings, split_arguments
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BrokerError, Refused, VhostMissing
from delayctl.topology.expand import expand
from delayctl.topology.management import Management
from delayctl.topology.model import Topology, freeze_arguments
from delayctl.topology.names import Names
from delayctl.topology.spec import Spec

_LOOK_S = 2.0  # What the management API may take, which consuming can do without.
# Levels, their shards, steps of the ladder, and what stands in for one of these; behind any prefix.
_OURS = re.compile(r".*?delay\.(?P<level>[^.]+)(?P<number>\.[0-9]+)?(\.next)?\.queue")
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Delay:
    """A queue that messages leave by themselves."""

    queue: str
    ttl: Duration
    exit: str
    is_ours: bool  # Otherwise it may be a queue of work that nobody has done in time.

    def __str__(self) -> str:
        return (
            f"{self.queue} is a delay: what waits there goes on to {self.exit} after {self.ttl}, "
            "and what is taken here never arrives"
        )


@dataclass(frozen=True, slots=True)
class Suspect:
    """A queue that is called like a delay, where nobody tells whether it is one."""

    queue: str
    is_ours = True

    def __str__(self) -> str:
        return (
            f"{self.queue} looks like a delay, and the management API can't be asked: "
            "what is taken out of one never arrives"
        )


def guard(access: Access, queue: str, *, spec: Spec | None, yes: bool) -> None:
    """Ask before messages are taken out of a delay; where it is not certain that it is one of ours, only say so."""
    delay = None if yes else find_delay(access, queue, spec)
    if delay is None:
        return
    advice = "--requeue shows it and leaves it there, and so does delayctl pending"
    click.echo(f"{click.style('Warning:', fg='yellow')} {delay}; {advice}.", err=True)
    if delay.is_ours:
        ask("Take messages out of it?")


def find_delay(access: Access, queue: str, spec: Spec | None = None) -> Delay | Suspect | None:
    """The delay that a queue is, by the broker; where that can't be asked, by the file or by its name."""
    look = replace(access, timeout_s=min(access.timeout_s, _LOOK_S))
    management = Management(look, access.vhost or "/", is_patient=False)
    try:
        return delay_of(management.get(f"queues/{management.vhost}/{quoted(queue)}"))
    except BrokerError as error:
        if isinstance(error, VhostMissing) or (isinstance(error, Refused) and error.code == _NOT_FOUND):
            return None  # There is no such queue: consuming says so.
        return _unseen(queue, None if spec is None else expand(spec))


def _unseen(queue: str, desired: Topology | None) -> Delay | Suspect | None:
    """What a queue is that the broker tells nothing of: by the file, else by its name."""
    delay = None if desired is None else _by_file(queue, desired)
    is_work = desired is not None and queue in {each.name for each in desired.queues}
    return delay if delay or is_work else _by_name(queue)


def _by_name(queue: str) -> Suspect | None:
    found = _OURS.fullmatch(queue)
    # What is parked has such a name as well, and is there to be taken.
    is_delay = found is not None and (bool(found["number"]) or not Names().reserved(found["level"]))
    return Suspect(queue) if is_delay else None


def _by_file(queue: str, desired: Topology) -> Delay | None:
    names, exits = Names(desired.prefix), {each.name: each.settings.dead_letter_exchange for each in desired.queues}
    for wait in desired.waits:
        if queue in (wait.queue, names.next(wait.name).queue):
            return Delay(queue, wait.ttl, exits[wait.queue] or desired.exit, is_ours=True)
    return None


def delay_of(found: Mapping[str, Any]) -> Delay | None:
    """The delay that a queue is, by what the management API says of it."""
    own, _ = split_arguments(found.get("arguments") or {})
    ruled = policy_settings(freeze_arguments(found.get("effective_policy_definition") or {}))
    ttls = [ttl for ttl in (own.ttl, ruled.ttl) if ttl is not None]
    exit, name = own.dead_letter_exchange or ruled.dead_letter_exchange, str(found["name"])
    is_ours = _OURS.fullmatch(name) is not None
    if not ttls or exit is None or (found.get("consumers") and not is_ours):
        return None
    return Delay(name, min(ttls), exit or "the default exchange", is_ours)
