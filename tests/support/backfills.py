"""Backfills in a test's hands: rows in a lake, a topology on a broker, and the command between them."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.commands import Ran
from tests.support.rabbit import Rabbit


def orders(*due_in_s: float | None, start: int = 0) -> pa.Table:
    """Orders that have to be paid so many seconds from now; None: no due time."""
    now = datetime.now(UTC)
    due = [None if wait is None else now + timedelta(seconds=wait) for wait in due_in_s]
    numbers = list(range(start, start + len(due)))
    return pa.table({"order_id": numbers, "pay_by": pa.array(due, pa.timestamp("us", "UTC"))})


@dataclass(frozen=True)
class Backfill:
    """A job from a folder of Parquet files to a virtual host, with its checkpoint beside it."""

    rabbit: Rabbit
    topology: Path
    folder: Path

    @property
    def checkpoint(self) -> Path:
        """The checkpoint folder."""
        return self.folder / "checkpoint"

    def write(self, rows: pa.Table, name: str = "orders") -> None:
        """Put rows into the lake."""
        (self.folder / "orders").mkdir(exist_ok=True)
        pq.write_table(rows, self.folder / "orders" / f"{name}.parquet")

    def apply(self, text: str) -> None:
        """Bring the broker to a topology."""
        self.topology.write_text(text, encoding="utf-8")
        ran = self.rabbit.delayctl("apply", str(self.topology), "--yes")
        assert ran.code == 0, ran.err

    def arguments(self, *options: str) -> list[str]:
        """The command of the job; what is given in `options` is not taken from the usual ones."""
        usual = {
            "--topology": str(self.topology),
            "--source": f"parquet:{self.folder}/orders",
            "--key": "order_id",
            "--due-column": "pay_by",
            "--routing-key": "order.created",
            "--checkpoint": str(self.checkpoint),
        }
        replaced = {"--delay-column": "--due-column", "--level-column": "--due-column"}
        replaced["--routing-key-column"] = "--routing-key"
        left_out = {*options, *(replaced[option] for option in options if option in replaced)}
        given = [word for name, value in usual.items() if name not in left_out for word in (name, value)]
        return ["backfill", *given, *options]

    def run(self, *options: str, yes: bool = True) -> Ran:
        """Run the command in this process."""
        return self.rabbit.delayctl(*self.arguments(*options), *(["--yes"] if yes else []))

    def answer(self, *options: str) -> tuple[int, dict[str, Any]]:
        """Run the command, and take its answer as a value."""
        ran = self.run(*options, "--output", "json")
        assert ran.out, ran.err
        return ran.code, json.loads(ran.out)

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table in the checkpoint folder."""
        place = self.checkpoint / name
        return pq.read_table(place).to_pylist() if place.exists() and any(place.iterdir()) else []

    def ledger_by_level(self) -> dict[str | None, int]:
        """How many messages of the ledger are in which level; None: overdue."""
        return dict(Counter(row["level"] for row in self.table("ledger")))

    def rejected(self) -> dict[str, int]:
        """The reasons in the table of rejects."""
        return dict(Counter(row["reason"] for row in self.table("rejects")))
