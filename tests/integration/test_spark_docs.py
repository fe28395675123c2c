"""What docs/spark.md and the README show of Spark is run, from the first write to the audit."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delayctl.consumers import DONE, DelayConsumer, Message, Outcome
from delayctl.spark.source import DelaySource

from tests.conftest import WAYS
from tests.support.commands import Ran, delayctl
from tests.support.doc_blocks import ROOT, Block, blocks
from tests.support.doc_files import lay_out
from tests.support.doc_lines import Line, Way, lines_of, pages_with, way
from tests.support.rabbit import Rabbit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The README's commands are the same job once more, so that they come last.
PAGES = ("docs/spark.md", "README.md")
HEAD = "--source parquet:orders --key order_id --due-column pay_by --routing-key order.unpaid"
PLACES = (
    ('parquet("', 'parquet("{here}/'),
    ('"topology.yaml"', '"{here}/topology.yaml"'),
    ("/lake/", "{here}/"),
    ("amqp://etl@rabbit.example.com/shop", "{url}"),
    ("parquet:", "parquet:{here}/"),
    ("csv:", "csv:{here}/"),
    ("--ledger short", "--ledger {here}/unpaid"),
    ("--ledger unpaid", "--ledger {here}/unpaid"),
    ("--record records", "--record {here}/records"),
)
# Rows without a due time are refused.
LEAVES_SOMETHING = 3


class Reader:
    """Follows the pages in a folder of its own."""

    def __init__(self, rabbit: Rabbit, folder: Path, spark: "SparkSession") -> None:
        self.rabbit, self.folder = rabbit, folder
        # What the page leaves to the reader.
        self.names: dict[str, Any] = {"spark": spark, "url": rabbit.url, "DelayConsumer": DelayConsumer}
        self.names["handle"] = self.handle
        self.seen: list[str] = []

    def handle(self, message: Message) -> Outcome:
        """Take the overdue ones, and stop."""
        self.seen.append(str(message.message_id))
        if len(self.seen) == 5:
            self.names["consumer"].stop()
        return DONE

    def add(self, name: str, first: int, *due_in_s: float | None) -> None:
        """Put orders into the lake."""
        due = [None if wait is None else datetime.now(UTC) + timedelta(seconds=wait) for wait in due_in_s]
        ids, columns = [*range(first, first + len(due))], {"total": [9.5] * len(due), "status": ["open"] * len(due)}
        table = pa.table({"order_id": ids, **columns, "pay_by": pa.array(due, pa.timestamp("us", "UTC"))})
        place = self.folder / name
        place.parent.mkdir(exist_ok=True)
        pq.write_table(table, place)

    def read(self, block: Block) -> None:
        """Run a block."""
        if block.language == "python":
            exec(compile(self.placed(block.text), str(block), "exec"), self.names)
        for line in (line for line in lines_of(block) if way(line) is Way.SPARK):
            ran = self.type(line)
            expected = LEAVES_SOMETHING if "--checkpoint unpaid" in line.text else 0
            assert ran.code == expected, f"{line}\n{ran.out}{ran.err}"

    def type(self, line: Line) -> Ran:
        """Run a command; what a page leaves out as … is what stands above it."""
        words = shlex.split(self.placed(line.text.replace("backfill …", f"backfill {HEAD}")))[1:]
        return delayctl(*words, *(["--yes"] if words[0] == "backfill" else []))

    def placed(self, text: str) -> str:
        """The same text with places that are there; Spark, which began elsewhere, needs them in full."""
        for place, instead in PLACES:
            text = text.replace(place, instead.format(here=self.folder, url=self.rabbit.url))
        return text


@pytest.fixture
def reader(rabbit: Rabbit, tmp_path: Path, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A lake with orders and reminders, the page's topology on the broker, and a table to stream from."""
    lay_out("docs/spark.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELAYCTL_URL", rabbit.broker.url)
    monkeypatch.setenv("DELAYCTL_MANAGEMENT_URL", rabbit.broker.management_url)
    monkeypatch.setenv("DELAYCTL_VHOST", rabbit.vhost)
    assert delayctl("apply", "topology.yaml", "--yes").code == 0
    reader = Reader(rabbit, tmp_path, spark)
    reader.add("orders/today.parquet", 0, *[1800] * 10)
    reader.add("table/0.parquet", 100, *[1800] * 10)
    day = f"{datetime.now(UTC) + timedelta(minutes=30):%Y-%m-%d %H:%M}"
    (tmp_path / "reminders.csv").write_text(f"country,number,day,text\nde,1,{day},a\nfr,1,{day},b\n")
    spark.dataSource.register(DelaySource)  # As the page says for what is installed from a clone.
    spark.sql(f"CREATE TABLE orders USING parquet LOCATION '{tmp_path}/table'")
    yield reader
    spark.sql("DROP TABLE orders")


# One broker is enough for Spark: what brokers do differently is tested with the publisher.
@pytest.mark.parametrize("broker", [max(WAYS)], indirect=True, scope="session")
def test_the_pages_can_be_followed(reader: Reader) -> None:
    """Each block and each command after the other, with an account at the end that adds up."""
    for block in (block for page in PAGES for block in blocks() if block.page == ROOT / page):
        if block.page == ROOT / "README.md" and block.language == "python":
            continue  # Not of Spark.
        if "--dry-run" in block.text:
            reader.add("orders/more.parquet", 10, *[-60] * 5, 5 * 3600, None)
        reader.read(block)
        if "writeStream" in block.text:
            reader.names["query"].processAllAvailable()
            reader.names["query"].stop()

    assert sorted(map(int, reader.seen)) == [10, 11, 12, 13, 14]
    # Ten of the first write, ten of the stream, ten of the backfill, and one of the two reminders.
    assert reader.rabbit.ready("delay.1h.queue") == 31


def test_no_other_page_is_about_spark() -> None:
    """Those that are run above are all."""
    assert {*pages_with(Way.SPARK)} == {*PAGES}
