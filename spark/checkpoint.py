"""The checkpoint folder of a backfill: what is confirmed, what was put aside, and which runs there were."""

import secrets
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.columns import ID
from delayctl.spark.folder import Folder, as_no_pattern
from delayctl.spark.job_sheet import CLUSTER, JOB, differing, former_address, is_written_so, sheet_of
from delayctl.spark.journal import BEGUN_BY, LATER, LEDGER, REJECTS, RUNS, is_begun_by, run_of, run_sheet, stop_sign
from delayctl.spark.key_kinds import KINDS, check_kinds, check_texts, kinds_of_key
from delayctl.spark.outcome import Outcome
from delayctl.spark.places import absolute, shown
from delayctl.topology.errors import DelayctlError
from pyspark.sql import DataFrame, SparkSession

_OF_THE_BROKER = {"target", CLUSTER}


class Checkpoint:
    """The folder of one job."""

    def __init__(self, uri: str) -> None:
        self.uri = absolute(uri)
        self._folder = Folder(self.uri)
        self.token = secrets.token_hex(8)  # Tells this driver from one that begins a run in the same moment.

    def check(self, job: BackfillJob) -> str | None:
        """Make sure that the folder is this job's, or nobody's; what an earlier release wrote of it is written anew.

        Gives the address under which the broker was known, where it has another now.
        """
        known = self._job()
        if known is None:
            return None
        if found := differing(known, job):
            moved = "; where only the broker has moved, correct that in job.json" if {*found} <= _OF_THE_BROKER else ""
            raise DelayctlError(
                f"the checkpoint belongs to a job with another {', '.join(found)}",
                where=shown(self.uri),
                fix=f"give this job a folder of its own (--checkpoint), or the options that the other was begun with{moved}",
            )
        if not is_written_so(known, job):  # There may be secrets in it, also when there is nothing more to send.
            self._folder.write_json(JOB, sheet_of(job, known))
        return former_address(known, job)

    def check_key(self, job: BackfillJob, rows: DataFrame, ledger: DataFrame | None) -> tuple[str, ...]:
        """Make sure that rows have the ids that they had before; gives the kinds of values that make these."""
        known, kinds = self._job() or {}, kinds_of_key(rows, job)
        check_kinds(known, job, kinds, where=shown(self.uri))
        if job.origin.format == "csv" and ledger is not None and not known.get(KINDS):
            check_texts(rows, job, ledger, where=shown(self.uri))
        return kinds

    def _job(self) -> dict[str, object] | None:
        try:
            known = self._folder.read_json(JOB)
        except ValueError as error:
            raise DelayctlError(
                "the checkpoint is damaged: job.json is not JSON", where=shown(self.uri), fix="take a folder of its own"
            ) from error
        return known if known is None or isinstance(known, dict) else {}

    def ledger(self, spark: SparkSession) -> DataFrame | None:
        """The ids that are in the ledger; None where there are none."""
        if not self._folder.parts(LEDGER):
            return None
        place = as_no_pattern(self._folder.at(LEDGER))
        return spark.read.parquet(place if "://" in place else f"file:{place}").select(ID)

    def begin(self, job: BackfillJob, kinds: Sequence[str] = ()) -> int:
        """Begin a run, which ends all earlier ones that are still going on."""
        self._folder.write_json(JOB, sheet_of(job, self._job() or {}, kinds))
        runs = [run for name in self._folder.names(RUNS) if (run := run_of(name))]
        number = max(runs, default=0) + 1
        while not self._folder.create_json(f"{RUNS}/{run_sheet(number)}", self._sheet("running", started_at=_now())):
            number += 1  # Somebody else began that run meanwhile, and ends when this one is seen.
        return number

    def confirmed(self, run: int | None = None) -> int:
        """How many messages a run has confirmed so far, or all runs together."""
        return sum(part.rows for part in self._folder.parts(LEDGER) if run in (None, part.run))

    def stop(self, run: int) -> None:
        """Ask a run to come to an end."""
        self._folder.write_json(f"{RUNS}/{stop_sign(run)}", {"at": _now()})

    def end(self, outcome: Outcome) -> None:
        """Write down how a run ended; one that went through has met again whatever earlier ones put aside."""
        if not is_begun_by(self.token, outcome.run, self._folder):
            return  # An object store gave two drivers the same number, and this one lost.
        sheet = self._sheet(outcome.state, ended_at=_now(), **asdict(outcome))
        self._folder.write_json(f"{RUNS}/{run_sheet(outcome.run)}", sheet)
        if outcome.state == "done":
            for table in (REJECTS, LATER):
                for part in self._folder.parts(table):
                    if part.run < outcome.run:
                        self._folder.delete_part(table, part)

    def _sheet(self, state: str, **more: object) -> dict[str, object]:
        return {"state": state, BEGUN_BY: self.token, **more}


def check_shared(folder: Folder, run: int) -> None:
    """Make sure, on an executor, that this is the folder that the driver began the run in."""
    if folder.read_json(f"{RUNS}/{run_sheet(run)}") is None:
        raise DelayctlError(
            f"executors do not see the checkpoint {shown(folder.uri)}",
            fix="give a folder that the driver and all executors share: --checkpoint s3://bucket/orders, hdfs://…, or NFS",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
