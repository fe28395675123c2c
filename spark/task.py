"""One task: rows of a partition become messages, in blocks that are written down as soon as the broker has them."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from delayctl.publishers.choice import Rounding, Way, Ways
from delayctl.publishers.clock import epoch_ms
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import Nacked, NotConfirmed, NotPublished, TooLarge, Unroutable
from delayctl.publishers.publisher import DEFAULT_WINDOW, DelayPublisher
from delayctl.spark.account import Account
from delayctl.spark.choose import Beyond, Chooser
from delayctl.spark.columns import Columns
from delayctl.spark.garbage import rarely_collected
from delayctl.spark.journal import LATER, LEDGER, REJECTS, Journal, Place
from delayctl.spark.pace import Pace
from delayctl.spark.patience import Patience
from delayctl.spark.rows import Bad, Row, read_rows, row_json
from delayctl.topology.access import Access
from delayctl.topology.errors import DelayctlError

MOST_REASONS = 20
_LONGEST_BLOCK_MS = 1_000  # A slow job is written down this often, and can be stopped this soon.
_LONGEST_REST_S = _LONGEST_BLOCK_MS / 1_000
_MOST_BYTES = 1 << 24  # Of a block, whatever the window says: large messages fill the memory before they fill it.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True, slots=True)
class Assignment:
    """What every task of a job is told; made on the driver, sent to the executors."""

    brokers: tuple[Access, ...]
    ways: Ways
    columns: Columns
    rounding: Rounding = "up"
    window: int = DEFAULT_WINDOW
    full_wait_s: float = 300.0  # How long to try again while a queue is full.
    rate: float | None = None  # Messages a second, of this task.
    name: str = "delayctl spark"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the rows of a task, and why some were not delivered."""

    account: Account
    reasons: tuple[tuple[str, int], ...] = ()
    leaves_rows: bool = False  # Somebody asked for an end, and there is more to do.


class _Sent(NamedTuple):
    """A message on its way, and where its row is."""

    row: Row
    way: Way
    due_ms: int
    sent_ms: int
    delivery: Delivery
    batch: pa.RecordBatch
    at: int
    has_waited: bool = False  # It was refused before.

    @property
    def queue(self) -> tuple[str, int, str]:
        """The queue that has to take it, as far as it is known: a level, the longest step at the ladder, or who has the key."""
        way = self.way
        return way.exchange, way.units.bit_length(), self.row.key if way.level is None else ""


def publish_rows(batches: Iterable[pa.RecordBatch], assignment: Assignment, journal: Journal) -> Result:
    """Publish a partition and say what became of it; one connection, closed at the end whatever happens."""
    known = journal.begin()
    publisher = DelayPublisher(
        assignment.brokers, topology=assignment.ways, window=assignment.window, name=assignment.name
    )
    try:
        with rarely_collected():
            return _publish(batches, Blocks(assignment, journal, publisher, known))
    finally:
        _close(publisher)


def _publish(batches: Iterable[pa.RecordBatch], blocks: "Blocks") -> Result:
    try:
        blocks.look_around()  # Whoever has taken over, or asks for an end, may have done so before this task began.
        for batch in batches:
            blocks.take(batch)
            if blocks.is_stopped:
                break
        return blocks.finish()
    except Exception:
        blocks.break_off()
        raise


def _close(publisher: DelayPublisher) -> None:
    try:
        publisher.close(0)
    except NotConfirmed:
        return  # Something else went wrong before; what was not confirmed is not in the ledger, and is sent again.


class Blocks:
    """Sends a block of messages while the one before is answered and written down.

    So never more than two blocks are confirmed without being in the ledger: what a task that is killed can make come
    twice.
    """

    def __init__(
        self,
        assignment: Assignment,
        journal: Journal,
        publisher: DelayPublisher,
        known: frozenset[str],
        *,
        clock: Callable[[], int] = epoch_ms,
    ) -> None:
        self._assignment, self._journal, self._publisher, self._known = assignment, journal, publisher, known
        self._choose = Chooser(assignment.ways, assignment.rounding).choose
        self._clock = clock
        self.is_stopped = False  # Somebody asked for an end: what is on its way is answered and written down first.
        self._leaves_rows = False
        self._pace = Pace(assignment.rate, sleep=self._rest) if assignment.rate is not None else None
        self._patience = Patience(assignment.full_wait_s)
        self._before: list[_Sent] = []
        self._block: list[_Sent] = []
        self._aside: dict[str, list[dict[str, Any]]] = {REJECTS: [], LATER: []}
        self._put_aside = self._bytes = self._rows = 0
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def take(self, batch: pa.RecordBatch) -> None:
        """Send the rows of a batch, or put them aside."""
        for index, row in enumerate(read_rows(batch, self._assignment.columns)):
            if self._is_due():
                self._turn()
            self._rows += 1
            if self.is_stopped:
                self._leave(1)
                return
            if isinstance(row, Bad):
                self._reject("rejected", row.message_id, row.reason, batch, index)
            elif row.message_id in self._known:
                self._counts["skipped"] += 1
            else:
                sent = self._send(row, batch, index)
                if sent is not None:
                    self._block.append(sent)
                    self._bytes += len(row.body)

    def _is_due(self) -> bool:
        """Whether a block is large enough, or has waited long enough to be written down."""
        most, block = self._assignment.window, self._block
        if len(block) >= most or self._bytes >= _MOST_BYTES or self._put_aside >= most:
            return True
        return bool(block) and block[-1].sent_ms - block[0].sent_ms >= _LONGEST_BLOCK_MS

    def finish(self) -> Result:
        """Wait until every message is answered, and write down the rest."""
        self._turn()
        self._turn()
        reasons = tuple(self._reasons.most_common(MOST_REASONS))
        return Result(Account(self._rows, **self._counts), reasons, self._leaves_rows)

    def break_off(self) -> None:
        """Something went wrong: write down what is confirmed all the same, so that it does not come twice."""
        self._note_confirmed()

    def _leave(self, rows: int) -> None:
        """Leave rows to the next run, as if they had not been read."""
        self._rows -= rows
        self._leaves_rows = True

    def _rest(self, seconds: float) -> None:
        """Sleep until the next message may go, which may be long; hear meanwhile who asks for an end, and write things down."""
        left_s = seconds
        while left_s > _LONGEST_REST_S and not self.is_stopped:
            time.sleep(_LONGEST_REST_S)
            left_s -= _LONGEST_REST_S
            self.look_around()
            self._note_confirmed()
        if not self.is_stopped:
            time.sleep(left_s)

    def _turn(self) -> None:
        self.look_around()
        before, self._before = self._before, []
        self._settle(before)
        self._before, self._block, self._bytes = self._block, [], 0
        for table, rows in self._aside.items():
            self._journal.write(table, rows)
            rows.clear()
        self._put_aside = 0

    def look_around(self) -> None:
        """See whether somebody has taken over, which ends this attempt, or asks for an end."""
        self._journal.check_fence()
        self.is_stopped = self._journal.is_stopped

    def _send(self, row: Row, batch: pa.RecordBatch, index: int) -> _Sent | None:
        """Hand a message over when it may go; None where its row is put aside instead, or left to the next run."""
        if self._pace is not None:
            self._pace.step()
            if self.is_stopped:
                self._leave(1)
                return None
        now_ms = self._clock()
        try:
            way, due_ms = self._choose(row, now_ms)
            delivery = self._publisher.send(
                row.body, way, key=row.key, due_ms=due_ms, message_id=row.message_id, headers=row.headers
            )
        except Beyond as error:
            if self._journal.keeps(LATER) and row.due_ms is not None:
                self._counts["later"] += 1
                later = {"message_id": row.message_id, "due_at": row.due_ms, "row": row_json(batch, index)}
                self._put(LATER, later)
            else:
                self._reject("rejected", row.message_id, error.what, batch, index)
            return None
        except NotPublished:
            raise  # The publisher itself is in trouble.
        except DelayctlError as error:
            self._reject("rejected", row.message_id, error.what, batch, index)
            return None
        return _Sent(row, way, due_ms, now_ms, delivery, batch, index)

    def _settle(self, block: list[_Sent]) -> None:
        """Wait for the answers to a block; where a queue is full, try again for a while, or until it is to end."""
        full, pause_s = self._answers(block), _FIRST_PAUSE_S
        while full:
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            self.look_around()
            if self.is_stopped:
                self._leave(len(full))
                return
            again = [sent for each in full if (sent := self._send(each.row, each.batch, each.at))]
            full = self._answers([sent._replace(has_waited=True) for sent in again])

    def _answers(self, block: list[_Sent]) -> list[_Sent]:
        """Write down what is confirmed; gives what was refused because a queue is full, if it is to be tried again."""
        confirmed, full, now_s = [], [], time.monotonic()
        trouble: BaseException | None = None
        for sent in block:
            match error := sent.delivery.exception():
                case None:
                    confirmed.append(sent)
                    if self._patience.is_tried:
                        self._patience.took(sent.queue, has_waited=sent.has_waited)
                case Nacked() if not self._patience.is_over(sent.queue, now_s):
                    full.append(sent)
                case Nacked() | TooLarge():
                    self._reject("nacked", error.message_id, error.what, sent.batch, sent.at)
                case Unroutable():
                    self._reject("returned", error.message_id, error.what, sent.batch, sent.at)
                case _:
                    trouble = trouble or error
        self._note(confirmed)
        if trouble is not None:
            raise trouble
        self._patience.wait_for({sent.queue for sent in full})
        return full

    def _note_confirmed(self) -> None:
        """Write down what is confirmed so far, and wait for the rest alone."""
        for block in (self._before, self._block):
            is_confirmed = [_is_confirmed(sent.delivery) for sent in block]  # Asked once: answers come all the while.
            self._note([sent for sent, is_so in zip(block, is_confirmed, strict=True) if is_so])
            block[:] = [sent for sent, is_so in zip(block, is_confirmed, strict=True) if not is_so]

    def _note(self, confirmed: list[_Sent]) -> None:
        self._counts["confirmed"] += len(confirmed)
        if not self._journal.keeps(LEDGER):
            return
        now_ms = self._clock()
        self._journal.write(LEDGER, [_ledger_row(sent, now_ms, self._journal.place) for sent in confirmed])

    def _reject(self, count: str, message_id: str | None, reason: str, batch: pa.RecordBatch, index: int) -> None:
        self._counts[count] += 1
        if reason in self._reasons or len(self._reasons) < 10 * MOST_REASONS:
            self._reasons[reason] += 1
        if self._journal.keeps(REJECTS):
            self._put(REJECTS, {"message_id": message_id, "reason": reason, "row": row_json(batch, index)})

    def _put(self, table: str, row: dict[str, Any]) -> None:
        self._aside[table].append(row)
        self._put_aside += 1


def _is_confirmed(delivery: Delivery) -> bool:
    return delivery.done() and delivery.exception() is None


def _ledger_row(sent: _Sent, confirmed_ms: int, place: Place) -> dict[str, Any]:
    return {
        "message_id": sent.row.message_id,
        "routing_key": sent.row.key,
        "exchange": sent.way.exchange,
        "level": sent.way.level,
        "due_at": sent.due_ms,
        "sent_at": sent.sent_ms,
        "confirmed_at": confirmed_ms,
        "expected_at": sent.sent_ms + sent.way.wait_ms,
        "run": place.run,
        "partition": place.partition,
    }
