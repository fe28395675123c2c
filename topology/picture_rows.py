"""The lines on the cards of a picture: keys with the levels they wait at, limits, counts and remarks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from delayctl.topology.duration import Duration
from delayctl.topology.model import Arguments, Binding, Settings, Table, thaw
from delayctl.topology.names import ANY
from delayctl.topology.picture import Mark, Row
from delayctl.topology.picture_cast import Cast, ends
from delayctl.topology.picture_subject import Subject
from delayctl.topology.spec import RetrySpec

MOST_ROWS = 12  # Of one way; more keys than that are counted.
_WEIGHT: tuple[Mark, ...] = ("refused", "replace", "missing", "move", "update", "create", "delete", "foreign")


def together(marks: Iterable[Mark]) -> Mark:
    """One mark for several objects: theirs where they agree, else the gravest; something added to a whole changes it."""
    found = set(marks)
    if len(found) <= 1:
        return next(iter(found), "same")
    gravest = next(mark for mark in _WEIGHT if mark in found)
    return "update" if gravest in ("create", "delete", "foreign") else gravest


def out_rows(subject: Subject, cast: Cast, exchange: str, bindings: Sequence[Binding]) -> list[tuple[str, Row]]:
    """The lines of an exchange: what it looks for, and the card that this leads to."""

    def target(binding: Binding) -> str:
        return cast.card_of(ends(binding)[1])

    order = {card: position for position, card in enumerate(cast.waits)}
    ranked = sorted(bindings, key=lambda b: (order.get(target(b), len(order)), target(b), b.key))
    takes_all = subject.exchanges[exchange].type == "fanout" if exchange in subject.exchanges else False
    rows: list[tuple[str, Row]] = []
    for card, group in groupby(ranked, key=target):
        level = card.removeprefix("level ") if card in cast.waits else ""
        lines = [
            Row(
                _looked_for(b, takes_all),
                (level,) if level else (),
                "" if level else f"→ {b.destination}",
                subject.mark(b),
                (b,),
            )
            for b in group
        ]
        rows += [(card, row) for row in folded(lines)]
    return rows


def in_rows(subject: Subject, cast: Cast, bindings: Iterable[Binding]) -> list[Row]:
    """The lines of what is bound to the exit: the keys it takes, and where these have waited."""
    lines = [_in_row(subject, cast, binding) for binding in bindings]
    order = {level: position for position, level in enumerate((*cast.levels, ANY))}
    lines.sort(key=lambda row: (row.is_remark, order.get(row.waits[0], 99) if row.waits else 99, row.text))
    return folded(lines)


def folded(lines: list[Row]) -> list[Row]:
    """Lines with the many counted instead of shown, unless something happens to them."""
    if len(lines) <= MOST_ROWS:
        return lines
    shown = [line for line in lines if line.mark != "same"][: MOST_ROWS * 2]
    shown += [line for line in lines if line not in shown][: max(0, MOST_ROWS - 1 - len(shown))]
    rest = [line for line in lines if line not in shown]
    if not rest:
        return lines
    bindings = tuple(binding for line in rest for binding in line.bindings)
    waits = tuple(dict.fromkeys(wait for line in rest for wait in line.waits))
    kept = [line for line in lines if line in shown]
    return [*kept, Row(f"… {len(rest):,} more", waits, mark=together(line.mark for line in rest), bindings=bindings)]


def _in_row(subject: Subject, cast: Cast, binding: Binding) -> Row:
    names, mark = subject.names, subject.mark(binding)
    if binding.key == names.park_key(binding.destination):
        return Row("parked messages", mark=mark, bindings=(binding,), is_remark=True)
    if binding.key == names.retry_key(binding.destination):
        retry = next((retry for retry in subject.retries if retry.queue == binding.destination), None)
        return Row("↻ retries", (), retry_note(retry), mark, (binding,), is_remark=True)
    return Row(binding.key or "(no key)", cast.waited_at(binding), "", mark, (binding,))


def retry_note(retry: RetrySpec | None) -> str:
    """How often, and how long in between."""
    if retry is None or not retry.waits:
        return ""
    first, last = retry.waits[0], retry.waits[-1]
    span = first if first == last else f"{first} … {last}"
    return f"{len(retry.waits)} × {span}"


def retry_remarks(settings: Settings, retry: RetrySpec | None) -> Iterator[Row]:
    """What a queue does by itself with what fails."""
    if settings.waits_between_retries:
        span = f"{settings.retry_min or Duration(0)} … {settings.retry_max or Duration(0)}"
        yield Row("↻ waits in the queue", (), f"{settings.delivery_limit or '∞'} × {span}", is_remark=True)
    if retry is not None:
        yield Row(f"then parked in {retry.park}", is_remark=True, leads_to=retry.park)


def limits(settings: Settings) -> str:
    """How a queue keeps its messages, in a few words."""
    words = [settings.type or ""]
    words += [f"≤ {settings.max_length:,}"] if settings.max_length is not None else []
    words += [f"≤ {settings.max_bytes:,} bytes"] if settings.max_bytes is not None else []
    words += [settings.overflow] if settings.overflow and settings.max_length is not None else []
    words += ["at-least-once"] if settings.dead_letter_strategy == "at-least-once" else []
    return " · ".join(word for word in words if word)


def _looked_for(binding: Binding, takes_all: bool) -> str:
    if binding.arguments:
        return _headers(binding.arguments)
    return "every message" if takes_all else binding.key or "(no key)"


def _headers(arguments: Arguments) -> str:
    pairs = [f"{name}={_plain(value)}" for name, value in arguments if name != "x-match"]
    match = str(dict(arguments).get("x-match", "all"))
    return f"{'any of ' if match.startswith('any') else ''}{', '.join(pairs) or 'every message'}"


def _plain(value: object) -> str:
    return str(thaw(value)) if isinstance(value, Table | tuple) else str(value)
