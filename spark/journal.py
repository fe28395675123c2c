"""What a task writes down beside the broker: the ledger of what is confirmed, and what was put aside."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from delayctl.spark.folder import Folder, Part
from delayctl.topology.errors import DelayctlError

LEDGER, REJECTS, LATER, RUNS = "ledger", "rejects", "later", "runs"
BEGUN_BY = "token"  # In the sheet of a run: by which driver it was begun.
_BEGUN = ".begun"
_TIME = pa.timestamp("ms", "UTC")

LEDGER_SCHEMA = pa.schema(
    [
        ("message_id", pa.string()),
        ("routing_key", pa.string()),
        ("exchange", pa.string()),
        ("level", pa.string()),
        ("due_at", _TIME),
        ("sent_at", _TIME),
        ("confirmed_at", _TIME),
        ("expected_at", _TIME),
        ("run", pa.int32()),
        ("partition", pa.int32()),
    ]
)
REJECTS_SCHEMA = pa.schema([("message_id", pa.string()), ("reason", pa.string()), ("row", pa.string())])
LATER_SCHEMA = pa.schema([("message_id", pa.string()), ("due_at", _TIME), ("row", pa.string())])
SCHEMAS = {LEDGER: LEDGER_SCHEMA, REJECTS: REJECTS_SCHEMA, LATER: LATER_SCHEMA}


class Fenced(DelayctlError):
    """A newer run of the same job has begun."""


class Place(NamedTuple):
    """Which task this is."""

    run: int
    partition: int
    attempt: int


def run_sheet(run: int) -> str:
    """The name of the file in RUNS that says how a run is doing; with it a run begins."""
    return f"{run:04}.json"


def run_of(name: str) -> int | None:
    """The run that a file in RUNS speaks of, where it is such a sheet."""
    number, _, rest = name.partition(".")
    return int(number) if rest == "json" and number.isdecimal() else None


def is_begun_by(token: str, run: int, folder: Folder) -> bool:
    """Whether a run was begun by the driver with this token, and not by one that began in the same moment."""
    sheet = folder.read_json(f"{RUNS}/{run_sheet(run)}")
    return not isinstance(sheet, dict) or sheet.get(BEGUN_BY, token) == token


def stop_sign(run: int) -> str:
    """The name of the file in RUNS that asks a run to come to an end."""
    return f"{run:04}.stop"


class Journal:
    """Tables in folders; a table without a folder is not kept."""

    def __init__(
        self, folders: dict[str, Folder], place: Place, *, is_fenced: bool = False, token: str | None = None
    ) -> None:
        self._folders = folders
        self.place = place
        self._is_fenced = is_fenced
        self._token = token
        self._sequence = 0
        self.written: list[tuple[str, Part]] = []

    def keeps(self, table: str) -> bool:
        """Whether the rows of a table are written down."""
        return table in self._folders

    def write(self, table: str, rows: Sequence[dict[str, Any]]) -> None:
        """Add rows to a table, and come back when they are safe."""
        folder = self._folders.get(table)
        if folder is None or not rows:
            return
        part = Part(*self.place, self._sequence, len(rows))
        self._sequence += 1
        folder.write_part(table, part, rows, SCHEMAS[table])
        self.written.append((table, part))

    def begin(self) -> frozenset[str]:
        """Take over from earlier attempts of this task: gives the ids that they have in the ledger.

        What they put aside is removed: this attempt meets the same rows again.
        """
        if self._is_fenced:
            self._folders[LEDGER].write_json(f"{RUNS}/{'-'.join(map(str, self.place))}{_BEGUN}", {})
        for table in (REJECTS, LATER):
            for part in self._earlier(table):
                self._folders[table].delete_part(table, part)
        known: set[str] = set()
        for part in self._earlier(LEDGER):
            known.update(self._folders[LEDGER].read_part(LEDGER, part, ["message_id"]).column(0).to_pylist())
        return frozenset(known)

    def check_fence(self) -> None:
        """Make sure that neither a newer run nor a newer attempt has taken over: two at once would send things twice."""
        if not self._is_fenced:
            return
        names = self._folders[LEDGER].names(RUNS)
        newest = max((run for name in names if (run := run_of(name))), default=0)
        if newest > self.place.run:
            raise Fenced(f"run {newest} of this job has begun, and run {self.place.run} ends here", fix="let it finish")
        if self._token is not None and not is_begun_by(self._token, self.place.run, self._folders[LEDGER]):
            raise Fenced(f"another run {newest} of this job has begun, and this one ends here", fix="let it finish")
        attempts = [Place(*map(int, name.removesuffix(_BEGUN).split("-"))) for name in names if name.endswith(_BEGUN)]
        if any(place[:2] == self.place[:2] and place.attempt > self.place.attempt for place in attempts):
            raise Fenced(f"partition {self.place.partition} has begun anew, elsewhere", fix="let it finish")

    @property
    def is_stopped(self) -> bool:
        """Whether somebody asked this run to come to an end."""
        return self._is_fenced and stop_sign(self.place.run) in self._folders[LEDGER].names(RUNS)

    def _earlier(self, table: str) -> list[Part]:
        if table not in self._folders:
            return []
        mine = (self.place.run, self.place.partition)
        return [
            part
            for part in self._folders[table].parts(table)
            if (part.run, part.partition) == mine and part.attempt < self.place.attempt
        ]
