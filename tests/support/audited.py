"""Ledgers and records made by hand, for audits whose answer is known beforehand."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from delayctl.spark.folder import Folder, Part
from delayctl.spark.journal import LEDGER, LEDGER_SCHEMA

START = 1_763_312_400_000  # 2025-11-16T17:00:00Z, in milliseconds.
MINUTE = 60_000


def moment(ms: int) -> datetime:
    """So long after the start."""
    return datetime.fromtimestamp((START + ms) / 1000, UTC)


def sent(
    message_id: str, *, level: str | None = "1m", due: int = MINUTE, expected: int | None = None
) -> dict[str, Any]:
    """A row of a ledger; times after the start."""
    return {
        "message_id": message_id,
        "routing_key": "order.created",
        "exchange": "delay.exchange",
        "level": level,
        "due_at": moment(due),
        "sent_at": moment(0),
        "confirmed_at": moment(5),
        "expected_at": moment(due if expected is None else expected),
        "run": 1,
        "partition": 0,
    }


def write_ledger(folder: Path, rows: Sequence[dict[str, Any]]) -> str:
    """A checkpoint with this ledger, as a backfill leaves it."""
    Folder(str(folder)).write_part(LEDGER, Part(1, 0, 0, 0, len(rows)), rows, LEDGER_SCHEMA)
    return str(folder)


def came(message_id: str | None, received: int = MINUTE + 10, **others: Any) -> dict[str, Any]:
    """A delivery as it is recorded; the time after the start."""
    facts = {"queue": "orders.queue", "routing_key": "order.created", "due": START + MINUTE, "level": "1m"}
    tried = {"attempt": 0, "redelivered": False}
    return {"message_id": message_id, "received_at": START + received, **facts, **tried, **others}


def write_record(folder: Path, deliveries: Iterable[dict[str, Any]], *, name: str = "host-1-abc.ndjson") -> str:
    """A folder with a record in it."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(each) + "\n" for each in deliveries), encoding="utf-8")
    return str(folder)


def as_table(deliveries: Sequence[dict[str, Any]]) -> pa.Table:
    """The same as a table of Arrow."""
    return pa.Table.from_pylist(list(deliveries))
