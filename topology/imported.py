"""The file that an import hands out: a header that says what was found, then the Spec."""

from collections.abc import Iterable, Iterator

from delayctl.topology.adopt import Adopted, Note
from delayctl.topology.foreign_ladders import LEVELS, Ladder
from delayctl.topology.layout import scalar
from delayctl.topology.live import Live
from delayctl.topology.model import Binding
from delayctl.topology.names import Names
from delayctl.topology.recognise import Found, Wait
from delayctl.topology.remarks import remarks
from delayctl.topology.routing import DEFAULT_EXCHANGE
from delayctl.topology.spec import Spec
from delayctl.topology.wording import plural
from delayctl.topology.write import write_spec

_MOST_NAMED = 8


def imported_text(live: Live, found: Found, adopted: Adopted, *, vhost: str) -> str:
    """The whole file."""
    comments = "".join(f"# {line}".rstrip() + "\n" for line in _header(live, found, adopted, vhost))
    return f"{comments}\n{write_spec(adopted.spec)}"


def wait_text(wait: Wait) -> str:
    """A wait in a line: how long, how many, where it goes."""
    settings = wait.settings
    limits = [f"at most {settings.max_length:,}"] if settings.max_length is not None else []
    limits += [f"at most {settings.max_bytes:,} bytes"] if settings.max_bytes is not None else []
    overflow = [settings.overflow] if settings.overflow and limits else []
    words = ", ".join([f"waits {wait.ttl}", *(limits or ["without limit"]), *overflow])
    return f"{words}; then {_onward(wait)}"


def note_text(note: Note) -> str:
    """What the file could not say."""
    what = "left out" if note.is_left_out else "existing: true"
    return f"{_printable(note.subject)} ({what}): {_printable(note.reason)}"


def ladder_text(ladder: Ladder) -> str:
    """A ladder in a line."""
    if ladder.lacks:
        return f"{ladder.product}: {ladder.levels} of {plural(LEVELS, 'level')}"
    return f"{ladder.product}: {plural(LEVELS, 'level')}, delays of 1s to {ladder.longest} in steps of 1s"


def ladder_warning(ladder: Ladder) -> str | None:
    """What is wrong with a ladder, or None."""
    if not ladder.lacks:
        return None
    return (
        f"missing or not as it should be, so that delays which need it get lost: {_listed(map(scalar, ladder.lacks))}"
    )


def _header(live: Live, found: Found, adopted: Adopted, vhost: str) -> Iterator[str]:
    version = f", RabbitMQ {live.version}" if live.version else ""
    yield f"Imported from virtual host {scalar(vhost)}{version}. Planning this file changes nothing."
    if adopted.spec.levels:
        yield "It has delayctl's own shape, and is written as levels."
    for wait in found.waits:
        yield ""
        yield f"{scalar(wait.queue)}: {wait_text(wait)}"
        yield from (f"  {line}" for line in _wait_lines(wait, live))
    for ladder in found.ladders:
        yield ""
        yield from _ladder_lines(ladder)
    yield from _notes(adopted.notes)
    yield from _what_the_broker_does_not_know(adopted.spec)


def _wait_lines(wait: Wait, live: Live) -> Iterator[str]:
    yield f"entered from {_listed(_way(way) for way in wait.ways_in)}" if wait.ways_in else "entered by its name"
    if wait.policies:
        names = _listed(map(scalar, wait.policies))
        yield f"set by policy {names}, which is not delayctl's and stays as it is"
    yield from (f"! {_printable(remark)}" for remark in remarks(wait, live))


def _ladder_lines(ladder: Ladder) -> Iterator[str]:
    yield ladder_text(ladder)
    yield "  Another product's own: described with existing: true, never created, changed or deleted."
    yield f"  The key begins with the delay in seconds as {LEVELS} bits, highest first: 0.0. … .1.0.1.target waits 5s."
    yield "  Level n takes one bit: 1 waits 2^n s in the level's queue, 0 passes on to level n-1 at once."
    yield f"  Below level 0 it comes out of {scalar(ladder.delivery)}, bound by #.target."
    yield f"  Delivers to {_listed(map(scalar, ladder.targets))}" if ladder.targets else "  Delivers to nothing yet"
    if warning := ladder_warning(ladder):
        yield f"  ! {warning}"


def _notes(notes: Iterable[Note]) -> Iterator[str]:
    lines = [f"  {note_text(note)}" for note in notes]
    if lines:
        yield ""
        yield "What this file can't say, and therefore leaves as it is:"
        yield from lines


def _what_the_broker_does_not_know(spec: Spec) -> Iterator[str]:
    """Retries in levels are known to consumers alone; on the broker they are a way back, and one to where they end."""
    names = Names(spec.prefix)
    starts = (names.retry_key(""), names.park_key(""))
    retried = [key for route in spec.routes for key in route.keys if key.startswith(starts)] if spec.levels else []
    if retried:
        yield ""
        yield f"Keys of retries ({_listed(map(scalar, retried))}): after how long and how often is not on the broker,"
        yield "nor which of them end where. Say so in a section retry: in place of these routes."


def _onward(wait: Wait) -> str:
    leaves, key = wait.settings.dead_letter_exchange, wait.settings.dead_letter_key
    if leaves == DEFAULT_EXCHANGE:
        return f"to queue {scalar(key)}" if key is not None else "to the queue that its key names"
    by_key = f" as {scalar(key)}" if key is not None else ""
    ends = _listed(dict.fromkeys(scalar(way.destination) for way in wait.ways_out))
    return f"to {scalar(leaves or '')}{by_key} → {ends or 'nothing'}"


def _way(binding: Binding) -> str:
    return scalar(binding.source) + (f" [{scalar(binding.key)}]" if binding.key else "")


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _MOST_NAMED} more" if len(known) > _MOST_NAMED else ""
    return ", ".join(known[:_MOST_NAMED]) + more


def _printable(text: str) -> str:
    """A text that neither ends a comment nor begins a template's expression."""
    safe = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return safe.replace("{", "\\x7b") if any(sign in safe for sign in ("{{", "{%", "{#")) else safe
