"""The options of `delayctl backfill`, and what the broker says of its levels, as the order that Spark carries out."""

import hashlib
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delayctl.cli.backfill_rooms import check_key, rooms_and_network, routes_from
from delayctl.cli.host import Host
from delayctl.publishers.choice import Ways
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted

if TYPE_CHECKING:
    from delayctl.spark.backfill_job import BackfillJob
    from delayctl.spark.backfill_order import Order

_RATE = re.compile(r"(\d[\d_,]*(?:\.\d+)?)(?:/(s|m|h))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, None: 1}


def need_spark() -> None:
    """Make sure that Spark is there. It need not be, so nothing of it is imported before this."""
    if find_spec("pyspark") is None or find_spec("pyarrow") is None:
        raise DelayctlError("Spark is not installed", fix="pip install 'delayctl[spark]'")


def order_from(host: Host, spec: Spec, topology: str, options: dict[str, Any]) -> "Order":
    """Check the options, then look at the broker."""
    from delayctl.spark.backfill_order import Order  # noqa: PLC0415 (see need_spark)
    from delayctl.spark.places import check_source  # noqa: PLC0415 (see need_spark)

    desired = expand(spec)
    settings = options["settings"]
    job = job_from(options, f"{host.access.address} {host.vhost} {desired.exit}")
    # Whoever sets Hadoop's file system may have paths lead anywhere.
    check_source(job.origin.format, job.origin.place, is_told_elsewhere=any("hadoop" in each for each in settings))
    rate, full_wait = rate_from(options["rate"]), _duration(options["full_wait"])
    rooms, live = rooms_and_network(host, desired, topology)
    if job.routing_key is not None and job.headers is None:  # Headers may have further keys.
        check_key(job.routing_key, desired, live, topology)
    return Order(
        job,
        host.access,
        Ways.of(desired),
        rooms=rooms,
        routes=routes_from(desired, live),
        checkpoint=options["checkpoint"] or default_checkpoint(job),
        rounding=options["rounding"],
        keeps_later=options["beyond"] == "later",
        rate=rate,
        full_wait_s=full_wait.ms / 1000,
        window=options["window"],
        partitions=options["partitions"],
        master=options["master"],
        settings=dict(_setting(each) for each in settings),
    )


def job_from(options: dict[str, Any], target: str) -> "BackfillJob":
    """The job, checked."""
    from delayctl.spark.backfill_job import BackfillJob, check_job  # noqa: PLC0415 (see need_spark)
    from delayctl.spark.origin import origin_from  # noqa: PLC0415 (see need_spark)

    job = BackfillJob(
        origin_from(options["source"], options["source_options"]),
        tuple(name.strip() for names in options["keys"] for name in names.split(",") if name.strip()),
        routing_key=options["routing_key"],
        routing_key_column=options["routing_key_column"],
        due=options["due_column"],
        delay=options["delay_column"],
        level=options["level_column"],
        body=options["body_column"],
        headers=options["headers_column"],
        where=options["where"],
        id_prefix=options["id_prefix"],
        target=target,
    )
    check_job(job)
    check_beyond(job, options["beyond"])
    return job


def check_beyond(job: "BackfillJob", beyond: str) -> None:
    """Raise BadOption where rows are to be put aside until it is time, and nothing says when that is."""
    if beyond == "later" and job.due is None:
        raise BadOption(
            "--beyond later needs --due-column: a row that says how long it waits would be as far beyond in every later run",
            fix="give a due time: --due-column 'created_at + INTERVAL 4 HOUR', or leave out --beyond later",
        )


def default_checkpoint(job: "BackfillJob") -> str:
    """The same for the same job, so that the same command goes on where it stopped, also where an earlier release began."""
    names = [_checkpoint_named_by(each) for each in (*job.former_descriptions(), job.description())]
    return next((name for name in names if Path(name).exists()), names[-1])


def _checkpoint_named_by(description: dict[str, Any]) -> str:
    text = json.dumps(description, sort_keys=True)
    return f"backfill-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def rate_from(text: str | None) -> float | None:
    """Messages a second."""
    if text is None:
        return None
    match = _RATE.fullmatch(text)
    count = float(match[1].replace(",", "").replace("_", "")) if match else 0.0
    if not match or not count:
        raise BadOption(f"--rate is {quoted(text)}", fix="write it like 5000/s or 100000/m")
    return count / _SECONDS[match[2]]


def _duration(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError as error:
        raise BadOption(f"--full-wait: {error}", fix="write it as 500ms, 10s, 1m30s, 2h or 1d") from error


def _setting(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign or not name:
        raise BadOption("--conf is not NAME=VALUE", fix="write --conf spark.executor.memory=2g")
    return name, value
