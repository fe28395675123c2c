"""The command `explain`: the way of one message, by the file or by what is on the broker."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.explain_views import Explained, explain_json, explain_text
from delayctl.cli.host import host_for
from delayctl.cli.options import (
    Connection,
    connection_from,
    connection_options,
    output_option,
    spec_from,
    template_options,
    topology_argument,
)
from delayctl.cli.simulate_options import read_duration
from delayctl.cli.views import to_json_text
from delayctl.publishers.choice import BeyondLadder, NoSuchDelay, Ways
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.journey import Journey, journey
from delayctl.topology.ladder import headers_for
from delayctl.topology.live import Live, binding_from_api
from delayctl.topology.management import Management
from delayctl.topology.model import Topology
from delayctl.topology.names import MAX_NAME_BYTES, Names
from delayctl.topology.render import Rendered
from delayctl.topology.routing import FURTHER_KEYS, Message, Network
from delayctl.topology.source import ListNode, ScalarNode, load
from delayctl.topology.spec import Spec
from delayctl.topology.wording import did_you_mean, quoted, shorten

_ASK_THE_BROKER = "--live looks at the broker"
_NO_DELAYS = "the file has no delays of its own: name an exchange with --exchange"
_QUOTE_IT = "put a text in quotes of its own: --header \"kind='a: b'\""
_ENDLESS = (float("inf"), float("-inf"))  # What a number is read as that is too long for anything.


@click.command(
    short_help="Tell the way of a message, step by step with times.",
    epilog="""\b
Examples:
  delayctl explain topology.yaml --exchange orders.exchange --key order.created
  delayctl explain topology.yaml --level 15m --key order.created
  delayctl explain topology.yaml --delay 15m --key order.created
  delayctl explain topology.yaml --exchange orders.exchange --key order.created --header kind=store --header count=3
  delayctl explain topology.yaml --exchange orders.exchange --key order.created --live

\b
Exit code: 0 when every copy is delivered, parked or handed over to what others bound, 1 when one is lost,
dropped, stuck or returned.
""",
)
@topology_argument
@click.option("--exchange", metavar="NAME", help="The exchange that the message is published to.")
@click.option("--level", metavar="LEVEL", help="Publish straight to the entrance of this level instead.")
@click.option(
    "--delay", metavar="DURATION", help="Publish it to wait so long instead: at the level or the steps that do."
)
@click.option("--key", default="", metavar="KEY", help="Its routing key.  [default: none]")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header; 3 is a number, true a boolean, '\"3\"' a text, CC='[a, b]' further keys. May be repeated.",
)
@click.option("--live", is_flag=True, help="Look at what is on the broker instead of what the file says.")
@output_option
@template_options
@connection_options
def explain(
    topology: str,
    *,
    exchange: str | None,
    level: str | None,
    delay: str | None,
    key: str,
    headers: tuple[str, ...],
    live: bool,
    output: str,
    **options: Any,
) -> int:
    """Tell the way of a message through TOPOLOGY: exchanges, waits, and what becomes of each copy."""
    if sum(given is not None for given in (exchange, level, delay)) != 1:
        raise click.UsageError("say once where it is published: --exchange NAME, --level LEVEL or --delay DURATION")
    if (size := len(key.encode("utf-8", "surrogatepass"))) > MAX_NAME_BYTES:
        raise BadOption(f"--key has {size:,} bytes", fix=f"no message has a key of more than {MAX_NAME_BYTES} bytes")
    message = Message(key, _headers(headers))
    connection, spec = connection_from(options), spec_from(topology, options)
    desired = expand(spec)
    if delay is not None:
        exchange, message = _delayed(desired, delay, message)
    start = _entrance(desired, level, topology) if exchange is None else exchange
    explained = (
        _on_the_broker(connection, spec, desired, start, message)
        if live
        else _by_the_file(topology, spec, desired, start, message)
    )
    click.echo(to_json_text(explain_json(explained)) if output == "json" else explain_text(explained))
    return exit_codes.DONE if explained.journey.is_safe else exit_codes.FAILED


def _headers(assignments: Iterable[str]) -> dict[str, object]:
    headers: dict[str, object] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise BadOption(f"--header {quoted(assignment)} is not NAME=VALUE", fix="write --header kind=store")
        headers[name] = _header_value(assignment, value) if value else ""
    for name in FURTHER_KEYS:
        if not _is_list_of_texts(headers.get(name, [])):
            raise BadOption(f"--header {name} is not a list of keys", fix=f"write --header '{name}=[KEY, KEY]'")
    return headers


def _header_value(assignment: str, text: str) -> object:
    """A value as the file would mean it, so that both find the same: 3 and 003 are numbers, on is a text."""
    try:
        node = load(Rendered.untouched("--header", text))
    except InvalidTopology as error:
        why = error.problems[0].message
        raise BadOption(f"--header {quoted(assignment)} can't be read: {why}", fix=_QUOTE_IT) from error
    items = node.items if isinstance(node, ListNode) else [node]
    values = [item.value for item in items if isinstance(item, ScalarNode) and item.value not in _ENDLESS]
    if len(values) < len(items):
        what = f"--header {quoted(assignment)} is neither a plain value nor a list of plain values"
        raise BadOption(what, fix=f"{_QUOTE_IT}; a number has 64 bits at most")
    return values if isinstance(node, ListNode) else values[0]


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _entrance(desired: Topology, level: str | None, file: str) -> str:
    wanted = level or ""
    for known in desired.levels:
        if wanted == known.name:
            return known.entrance
    for known in desired.levels:
        if _duration(wanted) == known.ttl:
            return known.entrance
    names = [known.name for known in desired.levels]
    fix = f"name one of {', '.join(names)}" if names else "add levels to the file, or name an exchange with --exchange"
    raise DelayctlError(
        f"there is no level {quoted(wanted)}{did_you_mean(wanted, names)}", where=shorten(file, 255), fix=fix
    )


def _delayed(desired: Topology, delay: str, message: Message) -> tuple[str, Message]:
    """Where a publisher sends what shall wait so long, and what it writes on it."""
    wait_ms = read_duration("--delay", delay)
    try:
        way = Ways.of(desired).for_wait(wait_ms, "refuse")
    except BeyondLadder:
        raise
    except NoSuchDelay as error:
        known = ", ".join(str(level.ttl) for level in sorted(desired.levels, key=lambda level: level.ttl))
        fix = f"ask for one of {known}; any: true in delay takes every delay" if known else _NO_DELAYS
        raise DelayctlError(error.what, fix=fix) from error
    steps = headers_for(way.units) if way.units else {}
    return way.exchange, replace(message, headers={**message.headers, **steps})


def _duration(text: str) -> Duration | None:
    try:
        return Duration.parse(text)
    except ValueError:
        return None


def _by_the_file(file: str, spec: Spec, desired: Topology, exchange: str, message: Message) -> Explained:
    network = Network.of_topology(desired)
    _check_known(network, exchange, where=file, elsewhere=f"declare it in the file, or: {_ASK_THE_BROKER}")
    way = journey(network, exchange, message, parking=_parking(spec))
    return Explained(way, network, file, desired.delay_queues, tuple(_notes(desired, network, way)))


def _on_the_broker(connection: Connection, spec: Spec, desired: Topology, exchange: str, message: Message) -> Explained:
    vhost = connection.vhost_for(spec)
    host = host_for(connection, vhost)
    assert host.management is not None
    live = _read(host.management, spec.prefix)
    network = Network.of_live(live)
    where = f"virtual host {vhost} on RabbitMQ {live.version}, as it is now"
    _check_known(network, exchange, where=where, elsewhere="apply the file first, or leave out --live")
    way = journey(network, exchange, message, parking=_parking(spec))
    return Explained(way, network, where, desired.delay_queues, version=live.version)


def _read(management: Management, prefix: str) -> Live:
    """Read the broker, with what its definitions leave out: bindings to exclusive queues, internal exchanges."""
    live = management.read(prefix)  # Read first: it knows best what to say of a virtual host that is not there.
    bindings = [item for item in management.get(f"bindings/{management.vhost}") if item["source"]]
    live = replace(live, bindings=frozenset(map(binding_from_api, bindings)))
    unlisted = _exchanges_named_by(live) - live.exchanges.keys()
    return replace(live, exchanges=management.read(prefix, unlisted).exchanges) if unlisted else live


def _exchanges_named_by(live: Live) -> set[str]:
    bound = {binding.source for binding in live.bindings}
    bound |= {binding.destination for binding in live.bindings if binding.kind == "exchange"}
    network = Network.of_live(live)
    alternates = {exchange.alternate for exchange in network.exchanges.values()}
    exits = {queue.settings.dead_letter_exchange for queue in network.queues.values()}
    return {name for name in bound | alternates | exits if name and not name.startswith("amq.")}


def _check_known(network: Network, exchange: str, *, where: str, elsewhere: str) -> None:
    if exchange in network.exchanges:
        return
    guess = did_you_mean(exchange, network.exchanges)
    raise DelayctlError(f"there is no exchange {quoted(exchange)}{guess}", where=shorten(where, 255), fix=elsewhere)


def _parking(spec: Spec) -> frozenset[str]:
    return frozenset({Names(spec.prefix).unrouted_queue(), *(retry.park for retry in spec.retries)})


def _notes(desired: Topology, network: Network, way: Journey) -> Iterator[str]:
    """What the file leaves open of the things that the message meets."""
    met = {hop.exchange for passage in way.passages for hop in passage.routed.hops}
    met |= {stay.queue for passage in way.passages for stay in passage.stays}
    existing = sorted({reference.name for reference in desired.existing if reference.name in met})
    handed_over = {end.exchange for end in way.ends if end.exchange is not None}
    others = sorted(handed_over.difference(existing))
    assumed = sorted(network.assumed & met)
    if existing:
        yield f"of {', '.join(existing)} the file knows only its own bindings and no settings; {_ASK_THE_BROKER}."
    if others:
        yield f"the file binds nothing that takes it to {', '.join(others)}; {_ASK_THE_BROKER}."
    if not desired.waits and any(end.fate == "delivered" for end in way.ends):
        yield f"a policy on the broker can make a queue wait, and is not in the file; {_ASK_THE_BROKER}."
    if assumed:
        yield f"{', '.join(assumed)} may be of any type and is taken for topic; {_ASK_THE_BROKER}."
