"""The options of `delayctl backfill`, and what the broker says of its levels, as the order that Spark carries out."""

import re
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from delayctl.cli.backfill_checkpoint import default_checkpoint, tell_of_others
from delayctl.cli.backfill_rooms import check_key, rooms_and_network, routes_from
from delayctl.cli.host import Host
from delayctl.publishers.choice import Ways
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, BrokerError, DelayctlError
from delayctl.topology.expand import expand
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted

if TYPE_CHECKING:
    from delayctl.spark.backfill_job import BackfillJob
    from delayctl.spark.backfill_order import Order

_RATE = re.compile(r"(\d[\d_,]*(?:\.\d+)?)(?:/(s|m|h))?")
_COLUMNS = ("routing_key", "due", "delay", "level", "body", "headers")
_NEVER_EMPTY = ("where", "checkpoint", *(f"{name}_column" for name in _COLUMNS))
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
    job = replace(job_from(options, f"{host.access.address} {host.vhost} {desired.exit}"), cluster=_cluster(host))
    # Whoever sets Hadoop's file system may have paths lead anywhere.
    check_source(job.origin.format, job.origin.place, is_told_elsewhere=any("hadoop" in each for each in settings))
    checkpoint = options["checkpoint"]
    if checkpoint is None:
        checkpoint = default_checkpoint(job)
        tell_of_others(job, checkpoint)
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
        checkpoint=checkpoint,
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
    from delayctl.spark.places import normal  # noqa: PLC0415 (see need_spark)

    for name in _NEVER_EMPTY:
        if options.get(name) is not None and not options[name].strip():
            raise BadOption(
                f"--{name.replace('_', '-')} is empty",
                fix="give it a value, or leave it out; is a variable of the shell not set?",
            )
    origin = origin_from(options["source"], options["source_options"])
    job = BackfillJob(
        replace(origin, known_as=normal(origin.format, origin.place)),
        tuple(part for parts in options["keys"] for part in parts_of_key(parts)),
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


def _cluster(host: Host) -> str:
    """The name of the cluster; empty where nobody says it."""
    try:
        return host.management.cluster_name() if host.management is not None else ""
    except BrokerError:
        return ""  # What is wrong is said by whoever can't do without.


def parts_of_key(text: str) -> tuple[str, ...]:
    """What stands between commas; those in parentheses, and in texts of SQL, part nothing."""
    parts = [""]
    depth, is_text = 0, False
    for letter in text:
        is_text ^= letter == "'"
        depth += 0 if is_text else (letter == "(") - (letter == ")")
        if letter == "," and depth == 0 and not is_text:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts if part.strip())


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
