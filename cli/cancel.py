"""The command that cancels messages while they wait."""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.host import host_for
from delayctl.cli.options import (
    TopologyFile,
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
)
from delayctl.cli.views import to_json_text
from delayctl.consumers.cancelled import Cancellation, encode
from delayctl.publishers.choice import Ways
from delayctl.publishers.connection import Connection
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import Access
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.errors import BadOption, DelayctlError, NotPermitted, Refused
from delayctl.topology.expand import expand
from delayctl.topology.names import Names
from delayctl.topology.spec import BrokerWaits, Spec
from delayctl.topology.wording import argument, plural, quoted, shorten

_SLACK_MS = 3_600_000
_MOST_ID_BYTES = 255


@click.command(
    short_help="Cancel messages by id while they wait.",
    epilog="""\b
Examples:
  delayctl cancel topology.yaml order-4711
  delayctl cancel topology.yaml order-4711 order-4712 --for 7d
  delayctl cancel topology.yaml order-4711 --undo
""",
)
@click.argument("topology", type=TopologyFile())
@click.argument("message_ids", nargs=-1, required=True, metavar="MESSAGE_ID...")
@click.option(
    "--for", "duration", metavar="DURATION", help="Remember it this long.  [default: as long as anything can wait]"
)
@click.option("--undo", is_flag=True, help="Take it back: the messages are handled after all.")
@output_option
@template_options
@connection_options
def cancel(
    *, topology: str, message_ids: tuple[str, ...], duration: str | None, undo: bool, output: str, **options: Any
) -> int:
    """Have no DelayConsumer of TOPOLOGY handle these messages when their time comes.

    The file says cancel: true below delay. The messages go on waiting; a consumer that gets one of them acknowledges it
    unhandled, and logs it. One that was begun with is not stopped, and other consumers know nothing of it.
    """
    if undo and duration is not None:
        raise BadOption("--for goes with a cancellation, not with --undo", fix="leave out one of them")
    asked_ms = None if duration is None else _ms(duration)
    connection, spec = connection_from(options), spec_from(topology, options)
    if not spec.cancel or not spec.has_delays:
        raise DelayctlError(
            "this topology has no cancellations",
            where=topology,
            fix="write delay: {cancel: true}, apply it, and restart the consumers",
        )
    _check_ids(message_ids)
    remembered_ms = _longest_ms(spec) if asked_ms is None else asked_ms
    until_ms = 0 if undo else time.time_ns() // 1_000_000 + remembered_ms
    host = host_for(connection, connection.vhost_for(spec))
    unconfirmed = _tell(
        host.access, spec, [Cancellation(message_id, until_ms) for message_id in message_ids], file=topology
    )
    if unconfirmed:
        raise _stopped(message_ids, unconfirmed, "taken back" if undo else "cancelled")
    if output == "json":
        click.echo(to_json_text({"message_ids": list(message_ids), "undone": undo, "until": until_ms or None}))
    else:
        click.echo(_text(len(message_ids), until_ms))
    return exit_codes.DONE


def _tell(access: Access, spec: Spec, cancellations: list[Cancellation], *, file: str) -> list[str]:
    """Publish the cancellations and wait until the broker has them; without their stream they would be parked.

    Ctrl-C ends the waiting, and gives the ids that are not confirmed by then.
    """
    names = Names(spec.prefix)
    _check_stream(access, names.cancellations(), file=file)
    sent: dict[str, Delivery] = {}
    with DelayPublisher(access, topology=Ways(names.exit(), ()), name="delayctl cancel") as publisher:
        key, exit = names.cancel_key(), names.exit()
        try:
            for each in cancellations:
                sent[each.message_id] = publisher.publish(encode(each), key=key, exchange=exit)
            for answer in sent.values():
                answer.result()
        except KeyboardInterrupt:
            with suppress(NotConfirmed):  # Which is told by the ids.
                publisher.close(0)
    return [each.message_id for each in cancellations if not _is_confirmed(sent.get(each.message_id))]


def _is_confirmed(answer: Delivery | None) -> bool:
    return answer is not None and answer.done() and answer.exception() is None


def _stopped(message_ids: Sequence[str], unconfirmed: Sequence[str], done: str) -> DelayctlError:
    """Which are confirmed, and of which nobody knows."""
    unknown = f"may be {done} or not: {_named(unconfirmed)}"
    confirmed = [each for each in message_ids if each not in set(unconfirmed)]
    known = f"{_named(confirmed)} {'is' if len(confirmed) == 1 else 'are'} {done}; " if confirmed else ""
    return DelayctlError(
        f"stopped: {known}not confirmed, {unknown}", fix="run it again with these ids: to do it twice changes nothing"
    )


def _named(message_ids: Sequence[str]) -> str:
    return ", ".join(shorten(each, _MOST_ID_BYTES) for each in message_ids)


def _check_stream(access: Access, stream: str, *, file: str) -> None:
    connection = Connection(access, name="delayctl cancel")
    try:
        connection.open_channel(confirms=False)
        connection.check_queue(stream)
    except NotPermitted:
        return  # Who may not even look may still write to the exit.
    except Refused as error:
        what = f"the stream {quoted(stream)} is not on the broker"
        raise Refused(what, code=error.code, fix=f"declare it: delayctl apply {argument(file)}") from error
    finally:
        connection.close()


def _check_ids(message_ids: tuple[str, ...]) -> None:
    for message_id in message_ids:
        if not message_id or len(message_id.encode("utf-8", "surrogatepass")) > _MOST_ID_BYTES:
            what = f"{quoted(message_id)} can't be a message id"
            raise BadOption(what, fix="a message id has between 1 and 255 bytes")


def _longest_ms(spec: Spec) -> int:
    """As long as a message can be under way: the longest wait, and all of the longest retries."""
    waits = {wait.name: wait.ttl.ms for wait in expand(spec).wholes}
    ladder = spec.ladder.unit.ms << spec.ladder.steps if spec.ladder else 0
    in_levels = [sum(waits[name] for name in retry.waits) for retry in spec.retries]
    in_queues = [_all_ms(retry.by_broker) for retry in spec.retries if retry.by_broker]
    return max([*waits.values(), ladder]) + max([*in_levels, *in_queues], default=0) + _SLACK_MS


def _all_ms(waits: BrokerWaits) -> int:
    """As long as all retries that a queue makes by itself take together."""
    return sum(min(number * waits.step.ms, waits.longest.ms) for number in range(1, waits.most + 1))


def _ms(text: str) -> int:
    """--for; nothing waits longer than the longest TTL that a broker takes."""
    try:
        ms = Duration.parse(text).ms
    except ValueError as error:
        raise BadOption(f"--for: {error}", fix="write it as 1h or 7d") from error
    if not 0 < ms <= MAX_TTL_MS:
        what = f"--for {text} is {'no time at all' if not ms else 'longer than anything can wait'}"
        raise BadOption(what, fix=f"write more than 0s and up to {Duration(MAX_TTL_MS)}, such as 7d, or leave it out")
    return ms


def _text(count: int, until_ms: int) -> str:
    if not until_ms:
        return f"Taken back: {plural(count, 'message')} will be handled when the time comes."
    until = datetime.fromtimestamp(until_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"Cancelled: {plural(count, 'message')}, remembered until {until}.\n"
        "Consumers that run hear of it at once, others when they start. One that a handler has begun with is not stopped."
    )
