"""Orders that stream from files into messages, a file for each micro-batch."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import TopologyFile
from tests.support.rabbit import Rabbit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TOPOLOGY = """
version: 1
delay:
  levels: {200ms: {}, 1h: {max_length: 20, overflow: reject-publish}}
queues: {target: {}}
routes: [{key: k, delay: 200ms, to: target}]
"""
SCHEMA = "order_id bigint, delay string"


class OrderStream:
    """Orders in files, and queries that send them."""

    def __init__(self, rabbit: Rabbit, topology: TopologyFile, folder: Path) -> None:
        ran = rabbit.delayctl("apply", topology.write(TOPOLOGY), "--yes")
        assert ran.code == 0, ran.err
        self.rabbit, self.file, self.folder = rabbit, str(topology.path), folder
        (folder / "orders").mkdir()

    def add(self, name: str, ids: range, delay: str | None = "200ms") -> None:
        """Let a file of orders appear, whole."""
        lines = "".join(json.dumps({"order_id": number, "delay": delay}) + "\n" for number in ids)
        (self.folder / name).write_text(lines)
        (self.folder / name).rename(self.folder / "orders" / name)

    def options(self, **more: str) -> dict[str, str]:
        """The options of a query."""
        return {
            "topology": self.file,
            "url": self.rabbit.url,
            "checkpointLocation": str(self.folder / "checkpoint"),
            "payload": "json",
            "key": "order_id",
            "routing_key": "k",
            **more,
        }

    def start(self, spark: "SparkSession", **more: str) -> "StreamingQuery":
        """Begin a query that ends when it has sent all that is there."""
        return start_query(spark, str(self.folder / "orders"), self.options(**more))


def start_query(spark: "SparkSession", source: str, options: dict[str, str]) -> "StreamingQuery":
    """Send what is in a folder, and end."""
    from delayctl.spark.source import DelaySource  # noqa: PLC0415 (needs Spark, and most tests do without)

    spark.dataSource.register(DelaySource)
    orders = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").json(source)
    return orders.writeStream.format("delayctl").options(**options).trigger(availableNow=True).start()
