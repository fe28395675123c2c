"""What room messages need, as text: a sum that can be checked. Pure: nothing is read, nothing is printed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import click
from delayctl.cli.table import table
from delayctl.simulator.what_if_findings import bytes_text, rate_text
from delayctl.topology.calibration import Calibration
from delayctl.topology.capacity import HEADROOM, Capacity, Need
from delayctl.topology.footprint import Footprint
from delayctl.topology.rate import Rate
from delayctl.topology.wording import plural

_NONE = "-"
_HEADINGS = ("level", "queue", "delay", "rate", "wait", "max-length", "carries", "memory", "disk")


@dataclass(frozen=True)
class Answer:
    """The waits that were asked for, and what is known of the broker."""

    capacity: Capacity
    file: str | None = None
    calibrations: tuple[Calibration, ...] = ()
    notes: tuple[str, ...] = ()


def capacity_text(answer: Answer) -> str:
    """An answer as people read it."""
    capacity = answer.capacity
    word = click.style("fits", fg="green") if capacity.fits else click.style("does not fit", fg="red")
    single = answer.file is None
    lines = [f"{word}: {_question(capacity.needs[0]) if single else answer.file}", ""]
    lines += _lines(_single(capacity)) if single else _file(capacity)
    lines += _lines((*_available(capacity), *_assumed(answer)))
    for calibration in answer.calibrations:
        lines += ["", *_calibration(calibration)]
    if not capacity.fits:
        lines.append("")
    for shortfall in capacity.shortfalls:
        lines += [f"{click.style('Trouble:', fg='red')} {shortfall.what}", f"  fix: {shortfall.fix}"]
    lines += [f"{click.style('Note:', fg='cyan')} {note}" for note in answer.notes]
    return "\n".join(lines)


def _question(need: Need) -> str:
    times = f"{rate_text(need.rate)} for {need.delay}" if need.rate else f"a wait of {need.delay}"
    parts = [
        *([times] if need.delay else []),
        *([f"max_length {need.max_length:,}"] if need.max_length is not None else []),
        *([f"bodies of {bytes_text(need.body)}"] if need.body else []),
        f"{need.shape} queue",
    ]
    return ", ".join(parts)


def _single(capacity: Capacity) -> Iterator[tuple[str, str]]:
    """One wait, line by line."""
    [need] = capacity.needs
    if need.rate and need.delay and need.waiting is not None:
        yield "waiting", f"{_per_second(need.rate)}/s × {_seconds(need)} s = {need.waiting:,} messages"
    if need.advised is not None and need.waiting is not None:
        more = f"{need.waiting:,} + {float(HEADROOM):.0%} headroom, rounded up = {need.advised:,}"
        yield "max_length", more if need.limit is None else f"{need.limit:,} given; advised: {more}"
    elif need.room is not None:
        yield "max_length", f"{need.room:,}"
    if need.room and need.delay and need.carries:
        yield "carries", f"{need.room:,} / {_seconds(need)} s = {rate_text(need.carries)}"
    if need.room:
        yield "memory", f"{need.room:,} × {_each(need)}{_on_top(capacity)} = {bytes_text(capacity.memory)} when full"
        yield (
            "disk",
            f"{need.room:,} × {_bytes_each(need.footprint.disk, need.body)} = {bytes_text(need.disk)} when full",
        )
    if need.rate and need.body:
        traffic = bytes_text(int(need.rate.per_second * need.body))
        yield "traffic", f"{rate_text(need.rate)} × {need.body:,} B = {traffic}/s of bodies in, and as much out"


def _per_second(rate: Rate) -> str:
    per_second = rate.per_second
    return f"{int(per_second):,}" if per_second.denominator == 1 else f"{float(per_second):,.6g}"


def _seconds(need: Need) -> str:
    seconds = Fraction(need.delay.ms if need.delay else 0, 1000)
    return f"{int(seconds):,}" if seconds.denominator == 1 else f"{float(seconds):,.3f}"


def _each(need: Need) -> str:
    body = need.body if need.footprint.holds_bodies else None
    return _bytes_each(need.memory_each - (body or 0), body)


def _bytes_each(each: int, body: int | None) -> str:
    return f"({each:,} + {body:,} B)" if body else f"{each:,} B"


def _on_top(capacity: Capacity) -> str:
    return f" + {bytes_text(capacity.log)} for the log of quorum queues" if capacity.log else ""


def _file(capacity: Capacity) -> list[str]:
    """The waits of a file side by side, and their sum."""
    sums = [bytes_text(need.memory) for need in capacity.needs if need.memory]
    lines = [
        ("memory", f"{' + '.join(sums) or '0 B'}{_on_top(capacity)} = {bytes_text(capacity.memory)} when all are full"),
        ("disk", f"{bytes_text(capacity.disk)} when all are full"),
    ]
    return [*table(_HEADINGS, [_row(need) for need in capacity.needs]), "", *_lines(lines)]


def _row(need: Need) -> tuple[str, ...]:
    limit = _NONE if need.room is None else f"{need.room:,}"
    advice = f" ({need.advised:,})" if need.is_short else ""
    return (
        need.name,
        need.shape,
        _NONE if need.delay is None else str(need.delay),
        _NONE if need.rate is None else rate_text(need.rate),
        _NONE if need.waiting is None else f"{need.waiting:,}",
        click.style(limit, fg="red") + advice if need.is_short else limit,
        _NONE if need.carries is None else rate_text(need.carries),
        bytes_text(need.memory) if need.room is not None else _NONE,
        bytes_text(need.disk) if need.room is not None else _NONE,
    )


def _available(capacity: Capacity) -> Iterator[tuple[str, str]]:
    has = capacity.available
    if has.memory is None:
        return
    disk = "" if has.disk is None else f", {bytes_text(has.disk)} of disk"
    yield "there is", f"{bytes_text(has.memory)} of memory{disk} ({has.source})"
    if len(capacity.needs) == 1:
        [need] = capacity.needs
        log = f" and a log of {bytes_text(need.footprint.log_most)} at most" if need.footprint.log_most else ""
        yield "room for", f"{capacity.most_messages(need):,} messages, at {need.memory_each:,} B each{log}"


def _assumed(answer: Answer) -> Iterator[tuple[str, str]]:
    """What was reckoned with, shape by shape."""
    seen = {need.shape: need for need in answer.capacity.needs}
    for shape, need in seen.items():
        is_measured = any(calibration.shape == shape for calibration in answer.calibrations)
        yield "measured" if is_measured else "assumed", f"{footprint_text(need.footprint)} in a {shape} queue"
        yield "", f"by {need.footprint.source}{'' if is_measured else '; --calibrate measures it on your broker'}"
    if any(need.body is None for need in seen.values()):
        yield "", "bodies are not counted, since their size is not known (--size)"


def footprint_text(footprint: Footprint) -> str:
    """What a message takes."""
    body = " and its body" if footprint.holds_bodies else ""
    log = f" (and {footprint.log:,} B and its body while it is in the log)" if footprint.log_most else ""
    return f"{footprint.memory:,} B{body} of memory{log}, {footprint.disk:,} B and its body of disk a message"


def _calibration(calibration: Calibration) -> Iterator[str]:
    """What was seen, step by step."""
    yield (
        f"Calibrated on {calibration.node} (RabbitMQ {calibration.version}), {calibration.shape} queue,"
        f" bodies of {calibration.body:,} B, {calibration.per_second:,.0f}/s confirmed:"
    )
    rows = [
        (f"{reading.messages:,} wait", *(bytes_text(value) for value in (reading.queue, reading.held, reading.used)))
        for reading in calibration.readings
    ]
    each = (calibration.queue_each, calibration.held_each, calibration.used_each)
    rows.append(("per message", *(f"{value:,.0f} B" for value in each)))
    yield from table(("", "queue process", "node, for messages", "node, all memory"), rows)
    disk = calibration.disk_each
    yield f"disk: {disk:,.0f} B a message, with all else that was written" if disk else "disk: too little to be seen"
    yield from _doubts(calibration)


def _doubts(calibration: Calibration) -> Iterator[str]:
    if not calibration.is_whole:
        yield f"time was up after {plural(calibration.messages, 'message')}: raise --calibrate-time"
    if not calibration.is_settled:
        yield "the figures had not come to rest: calibrate again while the broker has less to do"


def _lines(pairs: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> list[str]:
    return [f"{name:<12}{text}" for name, text in pairs]
