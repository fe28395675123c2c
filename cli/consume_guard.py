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
from delayctl.topology.errors import BrokerError
from delayctl.topology.management import Management
from delayctl.topology.model import freeze_arguments

_LOOK_S = 2.0  # What the management API may take, which consuming can do without.
# Levels, their shards, steps of the ladder, and what stands in for one of these; behind any prefix.
_OURS = re.compile(r".*?delay\.[^.]+(\.[0-9]+)?(\.next)?\.queue")


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


def guard(access: Access, queue: str, *, yes: bool) -> None:
    """Ask before messages are taken out of a delay; where it is not certain that it is one, only say so."""
    delay = _look(access, queue)
    if delay is None or yes:
        return
    advice = "--requeue shows it and leaves it there, and so does delayctl pending"
    click.echo(f"{click.style('Warning:', fg='yellow')} {delay}; {advice}.", err=True)
    if delay.is_ours:
        ask("Take messages out of it?")


def _look(access: Access, queue: str) -> Delay | None:
    look = replace(access, timeout_s=min(access.timeout_s, _LOOK_S))
    management = Management(look, access.vhost or "/", is_patient=False)
    try:
        return delay_of(management.get(f"queues/{management.vhost}/{quoted(queue)}"))
    except BrokerError:
        return None  # Nobody tells, or there is no such queue: consuming says so.


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
