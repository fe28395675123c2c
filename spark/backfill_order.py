"""A backfill from beginning to end: look at the rows, ask, send them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from delayctl.publishers.choice import Rounding, Ways
from delayctl.publishers.clock import epoch_ms
from delayctl.publishers.publisher import DEFAULT_WINDOW
from delayctl.spark.backfill import Watcher, run_backfill, unconfirmed
from delayctl.spark.backfill_job import BackfillJob, first_of_each_key, messages_of, outline
from delayctl.spark.backfill_plan import any_weighs, look_ahead
from delayctl.spark.checkpoint import Checkpoint
from delayctl.spark.columns import HEADERS, Columns
from delayctl.spark.estimate import Estimate, Room
from delayctl.spark.folder import Folder
from delayctl.spark.journal import LATER, REJECTS
from delayctl.spark.origin import read_rows_from
from delayctl.spark.outcome import Outcome
from delayctl.spark.session import Interrupts, hear, spark_session
from delayctl.spark.taken_keys import Routes
from delayctl.spark.task import Assignment
from delayctl.spark.troubles import telling
from delayctl.topology.access import Access
from delayctl.topology.errors import BadOption
from delayctl.topology.wording import plural
from pyspark.sql import DataFrame, SparkSession

# True of every row, which Spark does not know: so a header that can't be made ends the look, and not the run behind it.
_IS_MAP = f"coalesce(size({HEADERS}), 0) >= -1"


@dataclass(frozen=True, slots=True)
class Order:
    """All that a backfill is told."""

    job: BackfillJob
    broker: Access
    ways: Ways
    rooms: tuple[Room, ...]
    checkpoint: str
    routes: Routes | None = None  # None: which keys are taken need not be looked at.
    rounding: Rounding = "up"
    keeps_later: bool = False
    rate: float | None = None
    full_wait_s: float = 300.0
    window: int = DEFAULT_WINDOW  # Of a task; twice as many are perhaps not yet in the ledger.
    partitions: int | None = None  # None: as many as there are cores.
    master: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


def backfill(order: Order, *, agree: Callable[[Estimate], bool], watcher: Watcher) -> tuple[Estimate, Outcome | None]:
    """Look ahead, and send the rows if `agree` says so."""
    checkpoint = Checkpoint(order.checkpoint)
    if before := checkpoint.check(order.job):
        watcher.notice(
            f"The checkpoint knows this broker at {before}; it is at {order.broker.address} now, by its cluster name."
        )
    watcher.phase("Starting Spark")
    with spark_session("delayctl backfill", order.master, order.settings) as session, telling():
        partitions = _partitions(order, session)
        watcher.phase("Looking at the rows")
        rows = read_rows_from(session, order.job.origin, order.job.key)
        messages, columns = messages_of(rows, order.job)
        kinds = checkpoint.check_key(order.job, rows, checkpoint.ledger(session))
        found = _look_ahead(rows, order, checkpoint, session)
        if not agree(found):
            return found, None
        watcher.phase("Sorting the rows")
        interrupts = Interrupts()
        hear(interrupts)  # From here on something is begun that has to be brought to an end, and told.
        run = checkpoint.begin(order.job, kinds)
        # Only now is the ledger read: a run that went on meanwhile writes no more.
        remaining = unconfirmed(first_of_each_key(messages, order.ways), checkpoint.ledger(session))
        return found, run_backfill(
            remaining,
            _assignment(order, columns),
            checkpoint,
            run,
            partitions=partitions,
            keeps_later=order.keeps_later,
            to_send=found.to_send,
            watcher=watcher,
            interrupts=interrupts,
        )


def forget_put_aside(place: str) -> None:
    """Remove what earlier runs refused and put aside, where there is nothing to do: every such row was mended, or is gone."""
    folder = Folder(Checkpoint(place).uri)
    for table in (REJECTS, LATER):
        for part in folder.parts(table):
            folder.delete_part(table, part)


def _look_ahead(rows: DataFrame, order: Order, checkpoint: Checkpoint, session: SparkSession) -> Estimate:
    outlines, _ = messages_of(rows, order.job if any_weighs(order.rooms) else outline(order.job))
    if order.job.headers is not None:
        outlines = outlines.where(_IS_MAP)
    return look_ahead(
        unconfirmed(first_of_each_key(outlines, order.ways), checkpoint.ledger(session)),
        checkpoint.confirmed(),
        order.ways,
        order.rooms,
        rounding=order.rounding,
        now_ms=epoch_ms(),
        rate=order.rate,
        routes=order.routes,
    )


def _partitions(order: Order, session: SparkSession) -> int:
    """How many tasks there are; all have to run at once, so there must be a core for each."""
    cores = session.sparkContext.defaultParallelism
    is_local = str(session.sparkContext.master).startswith("local[")
    if is_local and order.partitions is not None and order.partitions > cores:
        raise BadOption(
            f"--partitions {order.partitions} is more than the {plural(cores, 'core')} of this Spark",
            fix=f"give {cores} at most, or pretend: --master 'local[{order.partitions}]'",
        )
    return order.partitions or cores


def _assignment(order: Order, columns: Columns) -> Assignment:
    return Assignment(
        (order.broker,),
        order.ways,
        columns,
        order.rounding,
        order.window,
        full_wait_s=order.full_wait_s,
        rate=order.rate,
        name="delayctl backfill",
    )
