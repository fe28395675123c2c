"""The command that writes a file for what is on a broker already: import."""

from dataclasses import replace
from typing import Any

import click
from delayctl.cli.host import host_for
from delayctl.cli.inputs import MAX_FILE_BYTES
from delayctl.cli.options import connection_from, connection_options, output_option
from delayctl.cli.output import write_file
from delayctl.cli.views import plan_text, to_json_text
from delayctl.topology.adopt import Adopted, adopt, own_prefixes
from delayctl.topology.diff import diff
from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.foreign_ladders import Ladder
from delayctl.topology.imported import imported_text, ladder_text, ladder_warning, note_text, wait_text
from delayctl.topology.layout import scalar
from delayctl.topology.live import Live
from delayctl.topology.management import Management
from delayctl.topology.parse import MAX_PREFIX_BYTES, read_spec
from delayctl.topology.recognise import Found, Wait, names_mentioned, recognise
from delayctl.topology.remarks import remarks
from delayctl.topology.spec import Spec
from delayctl.topology.wording import argument, plural, quoted
from delayctl.topology.writable import name_obstacle


@click.command(
    "import",
    short_help="Write a file for what is on the broker already.",
    epilog="""\b
Examples:
  delayctl import --vhost shop > topology.yaml
  delayctl import --vhost shop --out topology.yaml && delayctl plan topology.yaml
  delayctl import --all --out everything.yaml       # also what has nothing to do with delays
  delayctl import --prefix shop.                    # only waits whose names begin so
""",
)
@click.option("--out", metavar="FILE", help="Write the file here instead of printing it.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.option("--all", "everything", is_flag=True, help="Describe the whole virtual host, not only what delays.")
@click.option("--prefix", metavar="TEXT", help="Only waits whose names begin so; also the prefix of the file.")
@output_option
@connection_options
def import_(out: str | None, force: bool, everything: bool, prefix: str | None, output: str, **options: Any) -> int:
    """Find what delays messages on a broker, made by hand or by others, and write a topology file for it.

    Planning that file changes nothing: what can't be written exactly is marked existing or left out, and said.
    """
    connection = connection_from(options)
    if prefix and (name_obstacle(prefix) or len(prefix.encode()) > MAX_PREFIX_BYTES):
        raise BadOption(f"--prefix {quoted(prefix)} can't begin names", fix="give a short plain text, such as shop.")
    vhost = connection.vhost_for(Spec(()))
    management = host_for(connection, vhost).management
    assert management is not None
    live = _read(management, prefix or "")
    narrowed_to = prefix or ""
    if prefix is None:
        prefix = _prefix_of(live)
        live = replace(live, record=management.read_record(prefix)) if prefix else live
    found = recognise(live, prefix=narrowed_to, everything=everything)
    if not found:
        raise _nothing(vhost, prefix, live)
    adopted = adopt(live, found, vhost=vhost, prefix=prefix)
    text = imported_text(live, found, adopted, vhost=vhost)
    _check_changes_nothing(text, live, vhost, prefix)
    if out:
        write_file(out, text, overwrite=force)
    _answer(text, out, output, _answer_json(live, found, adopted, vhost, text))
    _tell(found, adopted, out)
    return 0


def _read(management: Management, prefix: str) -> Live:
    """Read the virtual host, with the exchanges that definitions leave out: internal ones, and the broker's own."""
    live = management.read(prefix)
    unseen = names_mentioned(live) - live.exchanges.keys()
    return management.read(prefix, unseen) if unseen else live


def _prefix_of(live: Live) -> str:
    """The prefix of the one topology of delayctl's own shape, if there is one."""
    prefixes = own_prefixes(live)
    if len(prefixes) > 1:
        raise DelayctlError(
            f"the virtual host holds {len(prefixes)} topologies of delayctl's shape",
            fix="import one after the other: " + ", ".join(f"--prefix {prefix or repr('')}" for prefix in prefixes),
        )
    return prefixes[0] if prefixes else ""


def _nothing(vhost: str, prefix: str, live: Live) -> DelayctlError:
    there = f"{plural(len(live.exchanges), 'exchange')} and {plural(len(live.queues), 'queue')}"
    begins = f" whose name begins with '{prefix}'" if prefix else ""
    return DelayctlError(
        f"nothing delays messages in virtual host '{vhost}': of its {there} no queue{begins} has both a TTL and a "
        "dead-letter exchange",
        fix="name another virtual host with --vhost, describe all there is with --all, or begin with: delayctl init",
    )


def _check_changes_nothing(text: str, live: Live, vhost: str, prefix: str) -> None:
    """Refuse to hand out a file that would change something, or that could not be read."""
    fix = "this is a bug, please report it"
    if len(text.encode()) > MAX_FILE_BYTES:
        raise DelayctlError(
            f"the file would be larger than {MAX_FILE_BYTES:,} bytes", fix="leave out --all, or narrow it with --prefix"
        )
    try:
        plan = diff(expand(read_spec(text, {}, file="topology.yaml")), live, vhost=vhost)
    except InvalidTopology as error:
        raise DelayctlError(f"the file that was written can't be read\n{error}", fix=fix) from error
    if plan.is_empty:
        return
    if live.record is not None:
        fix = (
            f"delayctl manages this virtual host already (record of prefix '{prefix}'): use the file that was applied, "
            "or import under another name with --prefix"
        )
    shown = plan_text(plan, source="topology.yaml", version=live.version)
    raise DelayctlError(f"the file would change something, and is not handed out\n{shown}", fix=fix)


def _answer(text: str, out: str | None, output: str, answer: dict[str, Any]) -> None:
    if output == "json":
        click.echo(to_json_text(answer))
    elif out:
        click.echo(f"Wrote {out}. Next: delayctl plan {argument(out)}, which changes nothing.")
    else:
        click.echo(text, nl=False)


def _tell(found: Found, adopted: Adopted, out: str | None) -> None:
    """Say what was found beside the answer; the file itself says it in full."""
    if found.waits:
        click.echo(f"Found {plural(len(found.waits), 'waiting queue')}.", err=True)
        for wait in found.waits if out else ():
            click.echo(f"  {scalar(wait.queue)}: {wait_text(wait)}", err=True)
    for ladder in found.ladders:
        click.echo(f"Found {ladder_text(ladder)}.", err=True)
        if warning := ladder_warning(ladder):
            click.echo(f"{click.style('Warning:', fg='yellow')} {ladder.product}: {warning}", err=True)
    for note in adopted.notes:
        click.echo(f"{click.style('Warning:', fg='yellow')} {note_text(note)}", err=True)


def _answer_json(live: Live, found: Found, adopted: Adopted, vhost: str, text: str) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "rabbitmq_version": live.version,
        "prefix": adopted.spec.prefix,
        "levels": [level.name for level in adopted.spec.levels],
        "waits": [_wait_json(wait, live) for wait in found.waits],
        "ladders": [_ladder_json(ladder) for ladder in found.ladders],
        "notes": [
            {"subject": note.subject, "reason": note.reason, "left_out": note.is_left_out} for note in adopted.notes
        ],
        "file": text,
    }


def _wait_json(wait: Wait, live: Live) -> dict[str, Any]:
    settings = wait.settings
    return {
        "queue": wait.queue,
        "ttl_ms": wait.ttl.ms,
        "max_length": settings.max_length,
        "max_length_bytes": settings.max_bytes,
        "overflow": settings.overflow,
        "dead_letter_exchange": settings.dead_letter_exchange,
        "dead_letter_routing_key": settings.dead_letter_key,
        "policies": list(wait.policies),
        "entered_from": [{"exchange": way.source, "key": way.key} for way in wait.ways_in],
        "leads_to": [{way.kind: way.destination, "key": way.key} for way in wait.ways_out],
        "remarks": list(remarks(wait, live)),
    }


def _ladder_json(ladder: Ladder) -> dict[str, Any]:
    return {
        "product": ladder.product,
        "delivery": ladder.delivery,
        "levels": ladder.levels,
        "longest_ms": ladder.longest.ms,
        "lacks": list(ladder.lacks),
        "targets": list(ladder.targets),
    }
