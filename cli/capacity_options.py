"""From the options of capacity to the waits that are asked for; what does not go together is said before anything is done."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delayctl.cli.simulate_options import A_LADDER, read_duration, read_rates, read_size
from delayctl.topology.calibration import Budget
from delayctl.topology.capacity import Need
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.footprint import Footprint, Shape, footprint_of
from delayctl.topology.names import ANY
from delayctl.topology.rate import Rate
from delayctl.topology.spec import LadderSpec, LevelSpec, Spec, WaitSpec
from delayctl.topology.version import parse_version
from delayctl.topology.wording import did_you_mean, quoted

BARE = "messages"  # What a wait is called that is in no file.
_LONGEST_RUN_S = 1_800


@dataclass(frozen=True)
class Asked:
    """What the options say; None is not said."""

    rates: Mapping[str | None, Rate]
    delay: Duration | None = None
    body: int | None = None
    max_length: int | None = None
    memory: int | None = None
    memory_each: int | None = None
    shape: Shape | None = None
    version: str = ""

    def footprint(self, shape: Shape, version: str) -> Footprint:
        """What is assumed of a message: for the version that was named, else for the broker's."""
        assumed = footprint_of(shape, self.version or version)
        if self.memory_each is None:
            return assumed
        return Footprint(self.memory_each, False, assumed.disk, "--memory-per-message")


def asked_of(options: Mapping[str, Any]) -> Asked:
    """Read the options, or raise BadOption."""
    version, shape = options["rabbitmq"], options["shape"]
    if version and parse_version(f"{version}.0.0") is None:
        raise BadOption(f"--rabbitmq {quoted(version)} is no version", fix="write it as 3.10 or 4.3.6")
    if options["is_lazy"]:
        if shape == "quorum":
            raise BadOption("--lazy is for classic queues", fix="leave it out: quorum queues keep bodies on disk")
        shape = "lazy"
    delay = options["delay"]
    return Asked(
        rates=read_rates("--rate", options["rates"]),
        delay=None if delay is None else _positive("--delay", delay),
        body=_size("--size", options["size"]),
        max_length=options["max_length"],
        memory=_size("--memory", options["memory"]),
        memory_each=_size("--memory-per-message", options["memory_per_message"]),
        shape=shape,
        version=f"{version}.0.0" if version else "",
    )


def budget_of(options: Mapping[str, Any]) -> Budget:
    """How far a calibration may go, or BadOption."""
    seconds = _positive("--calibrate-time", options["calibrate_time"]).ms / 1000
    if seconds > _LONGEST_RUN_S:
        raise BadOption("--calibrate-time is more than half an hour", fix="choose less")
    return Budget(messages=options["calibrate_messages"], seconds=seconds)


def needs_without_file(asked: Asked, version: str) -> tuple[Need, ...]:
    """The one wait that the options describe, or BadOption."""
    if named := [name for name in asked.rates if name is not None]:
        raise BadOption(f"--rate {quoted(named[0])}=… names a level, and there is no file", fix="name the file, too")
    rate = asked.rates.get(None)
    if rate is not None and asked.delay is None:
        raise BadOption("--rate needs --delay: how long does each message wait?", fix="add --delay 30m")
    shape = asked.shape or "classic"
    need = Need(
        BARE, shape, asked.footprint(shape, version), asked.delay, rate, max_length=asked.max_length, body=asked.body
    )
    return (need,)


def needs_of_file(spec: Spec, asked: Asked, version: str) -> tuple[Need, ...]:
    """The waits of a file, or BadOption."""
    if asked.max_length is not None or asked.shape is not None:
        raise BadOption(
            "--max-length, --type and --lazy are for a wait without a file: a file has its own",
            fix="leave them out, or leave out the file and give --delay",
        )
    names = [*(level.name for level in spec.levels), *([ANY] if spec.ladder else [])]
    for name in asked.rates:
        if name is not None and name not in names:
            raise BadOption(
                f"--rate: there is no level {quoted(name)}{did_you_mean(name, names)}", fix=f"use {', '.join(names)}"
            )
    if asked.delay is not None and spec.ladder is None:
        raise BadOption(f"--delay is for {A_LADDER}: levels have their own", fix="leave it out")
    return tuple(_needs(spec, asked, version))


def _needs(spec: Spec, asked: Asked, version: str) -> Iterator[Need]:
    for level in spec.levels:
        yield _need(level.name, level, asked, version, level.ttl)
    if spec.ladder:
        # However it is spread over the steps: no more wait than come while the longest delay lasts.
        yield _need(ANY, spec.ladder, asked, version, asked.delay)


def _need(name: str, spec: LevelSpec | LadderSpec, asked: Asked, version: str, delay: Duration | None) -> Need:
    wait = spec.wait
    shape = shape_in(wait)
    return Need(
        name,
        shape,
        asked.footprint(shape, version),
        delay,
        asked.rates.get(name, asked.rates.get(None, wait.expected_rate)),
        wait.max_length,
        wait.max_bytes,
        asked.body,
        wait.overflow == "reject-publish",
    )


def shape_in(wait: WaitSpec) -> Shape:
    """How the queue of a level keeps its messages."""
    if wait.type == "quorum":
        return "quorum"
    return "lazy" if wait.lazy else "classic"


def _positive(option: str, text: str) -> Duration:
    ms = read_duration(option, text)
    if not ms:
        raise BadOption(f"{option} {quoted(text)} is no time at all", fix="choose more")
    return Duration(ms)


def _size(option: str, text: str | None) -> int | None:
    return None if text is None else read_size(option, text)
