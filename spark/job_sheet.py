"""What job.json says of a job, and whether it is the same one: however its place is written, and wherever its broker has moved."""

from collections.abc import Iterator, Mapping, Sequence

from delayctl.spark.backfill_job import BackfillJob
from delayctl.spark.key_kinds import KINDS
from delayctl.spark.places import normal

JOB = "job.json"
CLUSTER = "cluster"
_BESIDE = (CLUSTER, KINDS)  # What releases before did not write down.
_NOWHERE = object()


def sheet_of(job: BackfillJob, known: Mapping[str, object], kinds: Sequence[str] = ()) -> dict[str, object]:
    """All that is written down of a job; what it can't say today stays as it is known."""
    more = {CLUSTER: job.cluster or known.get(CLUSTER), KINDS: list(kinds) or known.get(KINDS)}
    return {**job.description(), **{name: value for name, value in more.items() if value}}


def differing(known: Mapping[str, object], job: BackfillJob) -> list[str]:
    """What is not the same in a sheet and a job; nothing where it is that job's."""
    wanted = (job.description(), *job.former_descriptions())
    found = min((_differing(each, one) for each in _readings(known, job) for one in wanted), key=len)
    clusters = {known.get(CLUSTER) or None, job.cluster or None} - {None}
    return [*found, CLUSTER] if len(clusters) > 1 else found


def is_written_so(known: Mapping[str, object], job: BackfillJob) -> bool:
    """Whether a sheet says of a job what is written down today, be it of another address of its broker."""
    return any(each == job.description() for each in _readings(known, job, respelled=False))


def former_address(known: Mapping[str, object], job: BackfillJob) -> str | None:
    """The address under which the broker was known, where it has another now."""
    before, now = (str(target).partition(" ")[0] for target in (known.get("target"), job.target))
    return before if before != now else None


def _readings(known: Mapping[str, object], job: BackfillJob, *, respelled: bool = True) -> Iterator[dict[str, object]]:
    """The sheet, and what it would say of the same place written otherwise, and of the broker at its address of today."""
    plain = {name: value for name, value in known.items() if name not in _BESIDE}
    if (
        job.cluster
        and known.get(CLUSTER) == job.cluster
        and _without_address(plain) == _without_address(job.description())
    ):
        plain["target"] = job.target
    yield plain
    if respelled:
        format_, _, place = str(plain.get("source")).partition(":")
        yield {**plain, "source": f"{format_}:{normal(format_, place)}"}


def _without_address(sheet: Mapping[str, object]) -> str:
    """Virtual host and exit."""
    return str(sheet.get("target")).partition(" ")[2]


def _differing(known: Mapping[str, object], wanted: Mapping[str, object]) -> list[str]:
    """The names that are not the same in both, or in one alone."""
    return [name for name in {**wanted, **known} if name not in known or wanted.get(name, _NOWHERE) != known[name]]
