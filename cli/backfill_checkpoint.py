"""The checkpoint folder of a backfill that names none: the same for the same job, and said what lies beside a new one."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from delayctl.topology.wording import plural

if TYPE_CHECKING:
    from delayctl.spark.backfill_job import BackfillJob

_MOST_NAMED = 5


def default_checkpoint(job: "BackfillJob") -> str:
    """Where the same command goes on where it stopped, however it is spelled, also where an earlier release began."""
    names = [_named_by(each) for each in (*job.former_descriptions(), job.description())]
    if found := next((name for name in reversed(names) if Path(name).exists()), None):
        return found
    at_its_address = replace(job, cluster="")
    return next((name for name, differing in _known(at_its_address) if not differing), names[-1])


def tell_of_others(job: "BackfillJob", name: str) -> None:
    """Where a new folder is begun, say which others there are of the same source or key: what they know is sent again."""
    if Path(name).exists():
        return
    others = [(other, differing) for other, differing in _known(job) if not {"source", "key"} <= {*differing}]
    if others:
        named = ", ".join(f"{other} ({_unlike(differing)})" for other, differing in others[:_MOST_NAMED])
        click.echo(
            f"Note: {name} is a new checkpoint, beside {plural(len(others), 'other')} of the same source or key: {named}. "
            "What is confirmed there is sent again; --checkpoint names the folder to go on with.",
            err=True,
        )


def _unlike(differing: list[str]) -> str:
    return f"another {', '.join(differing)}" if differing else "the same job, at another address of its broker"


def _known(job: "BackfillJob") -> Iterator[tuple[str, list[str]]]:
    """The checkpoints here that were named by default, and what is not the same in their jobs."""
    from delayctl.spark.job_sheet import JOB, differing  # noqa: PLC0415 (Spark takes seconds to load)

    for file in sorted(Path().glob(f"backfill-*/{JOB}")):
        sheet = _read(file)
        if isinstance(sheet, dict):
            yield str(file.parent), differing(sheet, job)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # Whoever goes on with it hears of that.
        return None


def _named_by(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True)
    return f"backfill-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
