"""The command that publishes one message, or a file of them."""

import os
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO, Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.forecast import Forecast, Forecaster, Tally, end_json, show_notes
from delayctl.cli.message_lines import WAYS, Outgoing, outgoing
from delayctl.cli.open_ladder import open_ways
from delayctl.cli.options import (
    TopologyFile,
    connection_from,
    connection_options,
    output_option,
    refuse_other_input,
    spec_from,
    template_options,
)
from delayctl.cli.publish_lines import LinesResult, Send, publish_lines, result_json, result_text
from delayctl.cli.views import to_json_text
from delayctl.publishers.choice import ROUNDINGS, Rounding, Way, Ways
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import Access
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.model import Topology
from delayctl.topology.names import MAX_NAME_BYTES
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted, shorten

_STDIN = "-"
_LONGEST_LIST = 400
_WRITE_DUE = "write it as 2026-11-16T18:30:00Z"


@click.command(
    short_help="Publish a delayed message, or a file of them.",
    epilog="""\b
Examples:
  delayctl publish topology.yaml --key order.created --delay 15m "order 4711"
  delayctl publish topology.yaml --key reminder --due "$(date -u -d '+10 minutes' +%FT%TZ)" --rounding up "call back"
  delayctl publish topology.yaml --file reminders.ndjson
  zcat reminders.ndjson.gz | delayctl publish topology.yaml --key reminder --level 1h -

\b
A line of such a file is a JSON object; body is a text or any JSON, what is left out is taken from the options:
  {"body": "order 4711", "key": "order.created", "delay": "15m", "message_id": "order-4711", "headers": {"shop": "eu"}}
""",
)
@click.argument("topology", type=TopologyFile())
@click.argument("body", required=False)
@click.option("--file", "file", metavar="FILE", help="Publish the lines of this file; - is stdin.")
@click.option("--key", help="Routing key that the message comes out with.")
@click.option("--delay", metavar="DURATION", help="How long it waits: 500ms, 10s, 1m30s, 2h, 1d.")
@click.option("--due", metavar="TIME", help="When it comes out, such as 2026-11-16T18:30:00Z.")
@click.option("--level", metavar="NAME", help="The level that it waits in.")
@click.option("--exchange", metavar="NAME", help="Publish here instead, as the services do.")
@click.option(
    "--rounding",
    type=click.Choice(ROUNDINGS),
    default="refuse",
    show_default=True,
    help="What becomes of a delay that no level has.",
)
@click.option("--message-id", metavar="ID", help="The same for every copy of a message.  [default: a new one]")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header; may be repeated.")
@output_option
@template_options
@connection_options
def publish(
    *,
    topology: str,
    body: str | None,
    file: str | None,
    rounding: Rounding,
    message_id: str | None,
    headers: tuple[str, ...],
    output: str,
    **options: Any,
) -> int:
    """Publish BODY to a delay of TOPOLOGY and wait until the broker has it safe.

    Without --delay, --due, --level or --exchange, or with a --due that has passed, a message is delivered at once.
    With --file, or - instead of BODY, one JSON object per line (see below). Nothing is declared; see delayctl apply.
    """
    said = {name: options.pop(name) for name in ("key", *WAYS)}
    given = {name: value for name, value in said.items() if value is not None}
    if len([name for name in WAYS if name in given]) > 1:
        raise BadOption("--delay, --due, --level and --exchange exclude each other", fix="leave out all but one")
    _check_times(given)
    if body is None and file is None:
        raise _nothing_beside(topology)
    source = _STDIN if body == _STDIN and file is None else file
    refuse_other_input(topology, "the messages", is_read=source == _STDIN)
    connection, spec = connection_from(options), spec_from(topology, options)
    access, desired = connection.access.at(connection.vhost_for(spec)), expand(spec)
    forecaster = Forecaster(spec, desired)
    stamped = _headers(headers)
    if source is None:
        message = _message(body or "", {**given, "message_id": message_id}, stamped)
        _check_has_way(message, spec)
        ways = _ways_for(message, access, desired)
        return _publish_one(access, ways, rounding, message, forecaster=forecaster, output=output)
    if body not in (None, _STDIN) or message_id is not None:
        raise BadOption("--file goes with neither BODY nor --message-id", fix="give each line a message_id of its own")
    defaults = {**given, "headers": stamped}
    with _opened(source) as lines:
        publisher, tally = _publisher(access, open_ways(access, desired), rounding), Tally(forecaster)
        result = publish_lines(lines, source, defaults, _checked(_sender(publisher), tally, spec), publisher.close)
    result.notes = tally.told()
    show_notes(result.notes)
    click.echo(to_json_text(result_json(result)) if output == "json" else result_text(result))
    return _code(result)


def _publish_one(
    access: Access, ways: Ways, rounding: Rounding, message: Outgoing, *, forecaster: Forecaster, output: str
) -> int:
    publisher = _publisher(access, ways, rounding)
    message = replace(message, message_id=message.message_id or uuid.uuid4().hex)
    started = time.perf_counter()
    try:
        _sender(publisher)(message).result()
    except KeyboardInterrupt as stop:
        raise DelayctlError(
            f"stopped: message {_said(str(message.message_id))} is not confirmed, it may have arrived or not",
            fix=f"publish it again with --message-id {message.message_id}",
        ) from stop
    finally:
        with suppress(NotConfirmed):
            publisher.close(0)
    took_ms = (time.perf_counter() - started) * 1000
    way = _way(message, ways, rounding)
    _tell(message, way, forecaster.of(message, way), took_ms, output)
    return exit_codes.DONE


def _tell(message: Outgoing, way: Way, forecast: Forecast, took_ms: float, output: str) -> None:
    notes = tuple(map(str, forecast.notes))
    show_notes(notes)
    if output == "json":
        answer = {
            "message_id": message.message_id,
            "key": message.key,
            "exchange": way.exchange,
            "level": way.level,
            "wait_ms": forecast.wait_ms,
            "ends": list(map(end_json, forecast.ends)),
            "notes": notes,
            "confirmed_after_ms": round(took_ms, 1),
        }
        click.echo(to_json_text(answer))
    else:
        said = f"Message {_said(str(message.message_id))} with key {_said(message.key)} {forecast.waits}"
        click.echo(f"{said}; confirmed after {took_ms:.0f} ms.")


def _ways_for(message: Outgoing, access: Access, desired: Topology) -> Ways:
    """The ways to choose from for one message; only what waits may need the ladder."""
    has_wait = message.delay is not None or message.due is not None
    return open_ways(access, desired) if has_wait else Ways.of(desired)


def _said(text: str) -> str:
    """A key or an id as it was given, whole; what is no text in it is sent as it is, and shown escaped."""
    return shorten(text, MAX_NAME_BYTES)


def _way(message: Outgoing, ways: Ways, rounding: Rounding) -> Way:
    """The way that the publisher has chosen."""
    if message.exchange is not None:
        return Way(message.exchange)
    if message.level is not None:
        return ways.at_level(message.level)
    if message.due is not None:
        return ways.for_wait(int((_due(message.due).timestamp() - time.time()) * 1000), rounding)
    return ways.for_wait(Duration.parse(message.delay).ms if message.delay else 0, rounding)


def _message(body: str, said: dict[str, Any], headers: dict[str, str]) -> Outgoing:
    if "key" not in said:
        raise BadOption("--key is missing", fix="name the routing key: --key order.created")
    return outgoing(os.fsencode(body), said, headers)


def _sender(publisher: DelayPublisher) -> Send:
    def send(message: Outgoing) -> Delivery:
        return publisher.publish(
            message.body,
            key=message.key,
            delay=message.delay,
            due=None if message.due is None else _due(message.due),
            level=message.level,
            exchange=message.exchange,
            message_id=message.message_id,
            headers=message.headers,
        )

    return send


def _checked(send: Send, tally: Tally, spec: Spec) -> Send:
    def send_and_count(message: Outgoing) -> Delivery:
        _check_has_way(message, spec)
        delivery = send(message)
        tally.count(message)
        return delivery

    return send_and_count


def _check_has_way(message: Outgoing, spec: Spec) -> None:
    """Raise DelayctlError where a message would go to a delay, and the file has none: nobody would ever declare it."""
    if message.exchange is not None or spec.has_delays:
        return
    ways_in = [exchange.name for exchange in spec.exchanges if not exchange.internal]
    named = f"one of {shorten(', '.join(ways_in), _LONGEST_LIST)}" if ways_in else "as the services do"
    raise DelayctlError(
        "the file has no delays of its own (delay: none): messages wait only where its exchanges lead to",
        fix=f"name the exchange to publish to with --exchange: {named}",
    )


def _nothing_beside(topology: str) -> BadOption:
    # Who leaves out the file has given the body in its place.
    what = f"there is nothing to publish: {quoted(topology)} is taken for the topology file"
    fix = "the first argument is the topology file; then give a BODY, --file FILE, or - for lines from stdin"
    return BadOption(what, fix=fix)


def _check_times(given: Mapping[str, str]) -> None:
    """Raise BadOption where --delay or --due can't be understood, whatever the lines of a file say."""
    try:
        if "delay" in given:
            Duration.parse(given["delay"])
        if "due" in given:
            _due(given["due"], fix=_WRITE_DUE)
    except ValueError as error:
        raise BadOption(f"--delay: {error}", fix="write 500ms, 10s, 1m30s, 2h or 1d") from error
    except DelayctlError as error:
        raise BadOption(f"--due: {error.what}", fix=error.fix) from error


def _due(value: str | int, *, fix: str = f"{_WRITE_DUE}, or as milliseconds since 1970") -> datetime:
    try:
        found = datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int) else datetime.fromisoformat(value)
    except (ValueError, OverflowError, OSError) as error:
        raise DelayctlError(f"the due time {quoted(str(value))} can't be understood", fix=fix) from error
    if found.tzinfo is None:
        raise DelayctlError("the due time has no time zone", fix="add Z for UTC, or an offset such as +02:00")
    return found


def _headers(assignments: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise BadOption("--header is not NAME=VALUE", fix="write --header shop=eu")
        found[name] = value
    return found


def _publisher(access: Access, ways: Ways, rounding: Rounding) -> DelayPublisher:
    return DelayPublisher(access, topology=ways, rounding=rounding, name="delayctl publish")


@contextmanager
def _opened(source: str) -> Iterator[IO[bytes]]:
    if source == _STDIN:
        yield sys.stdin.buffer
        return
    try:
        lines = open(source, "rb")  # noqa: SIM115 (closed below; only opening may be refused)
    except OSError as error:
        raise DelayctlError(f"the file can't be read: {error.strerror}", where=source, fix="check the path") from error
    with lines:
        yield lines


def _code(result: LinesResult) -> int:
    return exit_codes.DONE if result.is_complete else exit_codes.FAILED
