"""A look into queues for an audit: which messages lie there, whoever has recorded them or not. They stay where they are."""

import sys
import time
from typing import TYPE_CHECKING

import click
from delayctl.cli.consume_guard import find_delay
from delayctl.cli.host import Host
from delayctl.cli.returning import returning
from delayctl.consumers.deaths import Delays
from delayctl.consumers.look import look
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import argument, plural

_NO_DELAYS = Delays("", frozenset(), frozenset())  # Where messages were matters to nobody who counts them.

if TYPE_CHECKING:  # Spark's room is entered only by the command that needs it.
    from delayctl.spark.audit_inputs import Seen


def seen_in(host: Host, queues: tuple[str, ...]) -> "list[Seen]":
    """All messages that lie in these queues; each is told of, and a delay is refused before any is looked into."""
    for queue in queues:
        _check_is_no_delay(host, queue)
    return [each for queue in dict.fromkeys(queues) for each in _look_into(host, queue)]


def _check_is_no_delay(host: Host, queue: str) -> None:
    found = find_delay(host.access, queue)
    if found is not None and found.is_ours:
        raise BadOption(
            f"{queue} is a delay, or looks like one: what waits there is not to be held up",
            fix=f"leave out --look-into {argument(queue)}; delayctl pending shows what waits",
        )


def _look_into(host: Host, queue: str) -> "list[Seen]":
    from delayctl.spark.audit_inputs import Seen  # noqa: PLC0415 (Spark takes seconds to load)

    found = look(host.access, queue, sys.maxsize, returning(host, queue).most, _NO_DELAYS, name="delayctl audit")
    if found.is_worn and len(found.seen) < found.ready:
        raise DelayctlError(
            f"what lies in {queue} was looked at so often that the broker would soon give it up (x-delivery-limit)",
            fix=f"leave out --look-into {argument(queue)}, or bring it back first: delayctl redrive",
        )
    at = time.time_ns() // 1_000_000
    click.echo(f"Looked at {plural(len(found.seen), 'message')} in {queue}, and left all there.", err=True)
    return [Seen(each.message_id, queue, each.attempt, at) for each in found.seen]
