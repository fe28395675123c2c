"""The command that sends the rows of a lake into delays, with Spark."""

from typing import TYPE_CHECKING, Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.backfill_bar import Bar
from delayctl.cli.backfill_inputs import need_spark, order_from
from delayctl.cli.backfill_views import Scene, answer_json, estimate_text, nothing_text, outcome_text
from delayctl.cli.carry_out import ask
from delayctl.cli.host import host_for
from delayctl.cli.options import (
    TopologyFile,
    connection_from,
    connection_options,
    output_option,
    refuse_question,
    spec_from,
    template_options,
)
from delayctl.cli.output import tell
from delayctl.cli.views import to_json_text
from delayctl.publishers.choice import ROUNDINGS
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import plural

if TYPE_CHECKING:
    from delayctl.spark.estimate import Estimate
    from delayctl.spark.outcome import Outcome


@click.command(
    short_help="Send the rows of a table into delays, with Spark.",
    epilog="""\b
Examples:
  delayctl backfill --source parquet:orders/ --key order_id --due-column pay_by --routing-key order.created --dry-run
  delayctl backfill --source parquet:orders/ --key order_id --due-column pay_by --routing-key order.created --rate 5000/s --yes
  delayctl backfill --source csv:reminders.csv --key customer,day --due-column 'try_to_timestamp(day)' \\
      --routing-key-column "concat('reminder.', country)" --body-column text --where "country = 'de'" --beyond later
  delayctl backfill --source jdbc:postgresql://db/shop --source-option dbtable=orders --source-option user=reader …

\b
It can be stopped at any point (Ctrl-C, or worse): run the same command again, and only what the broker has not
confirmed is sent. What is put aside and what is confirmed is in the checkpoint folder; see delayctl audit.
""",
)
@click.option("--topology", default="topology.yaml", show_default=True, type=TopologyFile(), help="The topology file.")
@click.option("--source", required=True, metavar="FORMAT:PLACE", help="parquet:, csv:, json:, orc:, table:, jdbc: …")
@click.option(
    "--source-option",
    "source_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="For Spark's reader; may be repeated.",
)
@click.option("--where", metavar="CONDITION", help="Only these rows; SQL.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COLUMNS",
    help="The columns that identify a row: a,b. The message id is made of them; lower(a) and the like will do.",
)
@click.option("--id-prefix", default="", metavar="TEXT", help="In front of every message id.")
@click.option("--due-column", metavar="COLUMN", help="When a row is due: a timestamp.")
@click.option("--delay-column", metavar="COLUMN", help="Or how long it waits: 15m, or an interval.")
@click.option("--level-column", metavar="COLUMN", help="Or the level that it waits in.")
@click.option("--routing-key", metavar="KEY", help="The routing key that all messages come out with.")
@click.option("--routing-key-column", metavar="COLUMN", help="Or the routing key of each.")
@click.option("--body-column", metavar="COLUMN", help="The body.  [default: all columns, as JSON]")
@click.option("--headers-column", metavar="COLUMN", help="Headers: a map.")
@click.option(
    "--rounding",
    type=click.Choice(ROUNDINGS),
    default="up",
    show_default=True,
    help="What becomes of a wait that no level has.",
)
@click.option(
    "--beyond",
    type=click.Choice(["refuse", "later"]),
    default="refuse",
    show_default=True,
    help="Rows due later than the longest level waits: rejected, or put aside for a later run.",
)
@click.option("--rate", metavar="N/s", help="Not more than so many messages a second, all executors together.")
@click.option(
    "--checkpoint",
    metavar="FOLDER",
    help="Ledger, rejects and runs; executors write it too.  [default: backfill-…, the same for the same job]",
)
@click.option("--partitions", type=click.IntRange(1), help="How many tasks publish side by side.  [default: the cores]")
@click.option(
    "--window",
    type=click.IntRange(1),
    default=4096,
    show_default=True,
    help="How many messages of a task are on their way; twice as many can come twice when it is killed.",
)
@click.option(
    "--full-wait",
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How long to go on trying while a queue is full.",
)
@click.option("--allow-overflow", is_flag=True, help="Go on where a level does not hold it all.")
@click.option("--dry-run", is_flag=True, help="Only show what would happen.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--master", metavar="URL", help="Spark's master.  [default: local[*], or what spark-submit says]")
@click.option("--conf", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of Spark; may be repeated.")
@output_option
@template_options
@connection_options
def backfill(*, topology: str, output: str, dry_run: bool, yes: bool, allow_overflow: bool, **options: Any) -> int:
    """Publish the rows of a table, each into the delay after which it is due, and keep a ledger of what is confirmed.

    It looks at the rows first, says what would happen, and asks. A COLUMN may be any expression of Spark's SQL.
    """
    refuse_question(topology, yes=yes or dry_run)
    need_spark()
    from delayctl.spark.backfill_order import backfill as carry_out  # noqa: PLC0415 (see need_spark)
    from delayctl.spark.backfill_order import forget_put_aside  # noqa: PLC0415
    from delayctl.spark.places import shown  # noqa: PLC0415 (see need_spark)

    connection, spec = connection_from(options), spec_from(topology, options)
    order = order_from(host_for(connection, connection.vhost_for(spec)), spec, topology, options)
    longest = Duration(order.ways.longest_ms)
    source, broker = order.job.origin.shown, order.broker.address
    scene = Scene(source, topology, broker, longest, options["beyond"], shown(order.checkpoint))
    bar = Bar()

    def agree(found: "Estimate") -> bool:
        bar.clear()
        if output == "text" and (dry_run or found.is_work):
            tell(estimate_text(found, scene))
        elif output == "json" and found.overflowing and not allow_overflow:
            tell(to_json_text(answer_json(found, None, scene)))
        _check_room(found, allow_overflow)
        if dry_run or not found.is_work:
            return False
        if found.to_send and not yes:
            if output == "json":
                click.echo(estimate_text(found, scene), err=True)
            ask(f"Send {plural(found.to_send, 'message')}?")
        return True

    try:
        found, done = carry_out(order, agree=agree, watcher=bar)
    finally:
        bar.clear()
    if not (dry_run or found.is_work):
        forget_put_aside(order.checkpoint)
    if output == "json":
        tell(to_json_text(answer_json(found, done, scene)))
    elif done is not None:
        tell(outcome_text(done, found.confirmed_before, scene))
    elif not found.is_work:
        tell(nothing_text(found, scene))
    return exit_codes.DONE if done is None else _code(done)


def _check_room(found: "Estimate", allow_overflow: bool) -> None:
    if found.overflowing and not allow_overflow:
        names = ", ".join(level.room.level for level in found.overflowing)
        limits = [
            name
            for name, is_over in (
                ("max_length", any(level.overflow for level in found.overflowing)),
                ("max_bytes", any(level.overflow_bytes for level in found.overflowing)),
            )
            if is_over
        ]
        raise DelayctlError(
            f"{names} would overflow; nothing was sent",
            fix=f"send fewer rows (--where) or slower (--rate), raise {' and '.join(limits)}, or say --allow-overflow",
        )


def _code(done: "Outcome") -> int:
    if done.errors and not (done.in_ledger or done.is_stopped):  # What was killed is perhaps confirmed all the same.
        return exit_codes.FAILED
    is_whole = done.state == "done" and not done.account.refused
    return exit_codes.DONE if is_whole else exit_codes.PARTLY_APPLIED
