"""The command that compares what was sent with what came: audit."""

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.audit_look import seen_in
from delayctl.cli.audit_report import check_report, write_report
from delayctl.cli.audit_views import audit_json, audit_text
from delayctl.cli.host import host_for
from delayctl.cli.options import connection_from, connection_options, output_option
from delayctl.cli.views import to_json_text
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted

if TYPE_CHECKING:  # Spark is large, and loaded by the command itself.
    from delayctl.spark.audit import Audit
    from delayctl.spark.audit_inputs import Seen

_KINDS = ("lost", "untaken", "duplicated", "early", "late", "unknown")


@click.command(
    short_help="Prove what became of a backfill.",
    epilog="""\b
Examples:
  delayctl audit --ledger backfill/ --record records/
  delayctl audit --ledger backfill/ --record records/ --report audit.html --late-after 5s
  delayctl audit --ledger backfill/ --record records/ --show lost --limit 50
  delayctl audit --ledger backfill/ --record records/ --look-into delay.unrouted.queue --look-into orders.timeout.dlq
  delayctl audit --ledger backfill/ --record records/ --write trouble/ --master 'local[8]'
  delayctl audit --ledger backfill/ --record records/ --output json | jq .total.lost

\b
A consumer records with consumer.record("records/"), and so does: delayctl consume QUEUE --record records/
Exit code: 0 when nothing was lost, nothing is left untaken in a queue and nothing came early, else 1. Needs Java and pip install 'delayctl[spark]'.
""",
)
@click.option("--ledger", required=True, metavar="PLACE", help="The checkpoint folder of the backfill.")
@click.option(
    "--record",
    "records",
    multiple=True,
    metavar="PLACE",
    help="Folder or file that consumers recorded to: NDJSON or Parquet. May be repeated.",
)
@click.option(
    "--look-into",
    "queues",
    multiple=True,
    metavar="QUEUE",
    help="Count apart what lies in this queue and no consumer recorded; it is left there. May be repeated.",
)
@click.option("--drain", "formerly_drained", multiple=True, hidden=True, help="The same; once it took what lay there.")
@click.option("--yes", is_flag=True, hidden=True, expose_value=False, help="There is nothing to ask any more.")
@click.option(
    "--late-after", default="1s", show_default=True, metavar="DURATION", help="What comes later than this is late."
)
@click.option(
    "--grace",
    default="1m",
    show_default=True,
    metavar="DURATION",
    help="Only so long after it was expected is a message lost.",
)
@click.option(
    "--tolerance",
    default="100ms",
    show_default=True,
    metavar="DURATION",
    help="What the clocks of publishers and consumers may differ by before a message is early.",
)
@click.option("--until", metavar="TIME", help="Judge as of this moment, such as 2026-11-16T18:30:00Z.  [default: now]")
@click.option(
    "--show", multiple=True, type=click.Choice(_KINDS), help="List messages of this kind, too. May be repeated."
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many --show lists of a kind."
)
@click.option("--write", metavar="FOLDER", help="Write all messages of every such kind to a new folder, as Parquet.")
@click.option(
    "--report", metavar="FILE", help="Write a report: .html, in one file, or .md. Pictures need delayctl[plot]."
)
@click.option("--master", metavar="URL", help="Where Spark runs.  [default: local[*], or as spark-submit was told]")
@output_option
@connection_options
def audit(
    *,
    ledger: str,
    records: tuple[str, ...],
    queues: tuple[str, ...],
    formerly_drained: tuple[str, ...],
    report: str | None,
    output: str,
    **options: Any,
) -> int:
    """Compare the ledger of a backfill with what consumers recorded, by message id, and count what became of each.

    The join runs on Spark, so that millions take no more memory here than a few. The broker is asked only with --look-into.
    """
    from delayctl.spark.places import check_audit  # noqa: PLC0415 (with nothing of Spark in it)

    if report is not None:
        check_report(report)
    spans = {name: _span(name, options[name]) for name in ("grace", "late_after", "tolerance")}
    until = None if options["until"] is None else _moment(options["until"])
    connection = connection_from(options)
    looked_into = (*queues, *formerly_drained)
    if not records and not looked_into:
        raise BadOption("there is nothing to compare with", fix="name what consumers recorded: --record records/")
    check_audit(ledger, records)
    _check_spark()
    seen = seen_in(host_for(connection, connection.vhost_for(Spec(levels=()))), looked_into) if looked_into else []
    moment = time.time_ns() // 1_000_000 if until is None else until
    answer = _audited(ledger, records, {"moment": moment, **spans}, seen, options)
    if report is not None:
        write_report(answer, report, ledger=ledger)
        click.echo(f"Wrote {report}.", err=True)
    click.echo(
        to_json_text(audit_json(answer, ledger=ledger)) if output == "json" else audit_text(answer, ledger=ledger)
    )
    return exit_codes.DONE if answer.is_clean else exit_codes.FAILED


def _check_spark() -> None:
    """Make sure that Spark can be had, before any queue is looked into."""
    try:
        import delayctl.spark.audit_job  # noqa: PLC0415
        import delayctl.spark.session  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pyspark", "pyarrow"):
            raise
        raise DelayctlError("Spark is not installed", fix="pip install 'delayctl[spark]'") from error


def _audited(
    ledger: str, records: tuple[str, ...], rules: dict[str, int], seen: "list[Seen]", options: dict[str, Any]
) -> "Audit":
    from delayctl.spark.audit import Rules  # noqa: PLC0415 (Spark takes seconds to load)
    from delayctl.spark.audit_job import audit as run  # noqa: PLC0415
    from delayctl.spark.audit_job import suit  # noqa: PLC0415
    from delayctl.spark.session import spark_session  # noqa: PLC0415

    with spark_session("delayctl audit", options["master"], {}) as spark:
        suit(spark)
        chosen = {name: options[name] for name in ("show", "limit", "write")}
        return run(spark, ledger, records, Rules(**rules), seen=seen, **chosen)


def _span(name: str, text: str) -> int:
    try:
        return Duration.parse(text).ms
    except ValueError as error:
        raise BadOption(f"--{name.replace('_', '-')}: {error}", fix="write it as 500ms, 10s or 1m30s") from error


def _moment(text: str) -> int:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadOption(f"--until: {quoted(text)} is not a time", fix="write it as 2026-11-16T18:30:00Z") from error
    if found.tzinfo is None:
        raise BadOption("--until has no time zone", fix="add Z for UTC, or an offset such as +02:00")
    return round(found.timestamp() * 1000)
