"""What became of messages that were moved, as text or JSON. Pure: nothing is read, nothing is printed."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from delayctl.cli import exit_codes
from delayctl.consumers.homes import Stays
from delayctl.consumers.moved import Moved
from delayctl.topology.duration import Duration
from delayctl.topology.wording import plural, shorten

NOT_MEANT = Stays("not asked for")
_MOST_LINES = 10
_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Errand:
    """What was asked for, in words: `Redriven` and `Would redrive`, `redriven`."""

    queue: str
    done: str
    would: str
    is_dry: bool
    ready: int  # Messages in the queue when it began.
    limit: int | None = None  # To be moved.
    scan: int | None = None  # To be looked at.
    is_search: bool = False  # It ends when all is found that was asked for.
    keeps_places: bool | None = True  # What was looked at and left is where it was; None: nobody says.
    moved_before: int = 0  # From other queues; the limit is of all.

    def is_limit_of(self, moved: Moved) -> bool:
        """Say whether the limit has ended it."""
        tried = self.moved_before + moved.sent.total() + moved.failed.total()
        return self.limit is not None and tried >= self.limit


def moved_text(moved: Moved, errand: Errand, seconds: float) -> str:
    """The answer as people read it."""
    if not errand.ready:
        return f"Nothing is ready in {errand.queue}."
    return "\n".join([_headline(moved, errand, seconds), *_places(moved), *_kept(moved), *_remarks(moved, errand)])


def _headline(moved: Moved, errand: Errand, seconds: float) -> str:
    count = moved.sent.total()
    of = f"{count:,} of {plural(errand.ready, 'message')} of {errand.queue}"
    if errand.is_dry:
        return f"{errand.would}: {of}. Nothing was moved."
    pace = f" ({count / seconds:,.0f}/s)" if seconds >= 1 and count else ""
    return f"{errand.done}: {of}, in {Duration(max(1, round(seconds * 1000)))}{pace}."


def _places(moved: Moved) -> Iterator[str]:
    yield from (f"  {count:,} to {shorten(to, _WIDTH)}" for to, count in _shown(moved.sent))
    if len(moved.sent) > _MOST_LINES:
        yield f"  … and {plural(len(moved.sent) - _MOST_LINES, 'other place')}"


def _kept(moved: Moved) -> Iterator[str]:
    for title, reasons in (("Left there", moved.left), ("Not taken by the broker, and left there", moved.failed)):
        if not reasons:
            continue
        yield f"{title}: {reasons.total():,}"
        for reason, count in _shown(reasons):
            yield f"  {count:,}: {shorten(reason.why, _WIDTH)}"
            if reason.fix:
                yield f"    fix: {reason.fix}"
        if len(reasons) > _MOST_LINES:
            yield f"  … and {plural(len(reasons) - _MOST_LINES, 'other reason')}"


def _remarks(moved: Moved, errand: Errand) -> Iterator[str]:
    unseen = errand.ready - moved.seen - moved.withheld
    if moved.is_stopped:
        again = " Run it again to go on." if unseen > 0 else ""
        yield f"Stopped: {plural(max(0, unseen), 'message')} not looked at.{again}"
    elif unseen > 0 and errand.is_limit_of(moved):
        yield f"Not looked at: {unseen:,}, by the limit of {errand.limit:,}."
    elif unseen > 0 and errand.scan is not None and moved.seen >= errand.scan:
        yield f"Not looked at: {unseen:,}, behind the first {errand.scan:,}; --scan looks further."
    elif unseen > 0 and not errand.is_search and not (moved.failed or moved.is_worn):
        yield f"Gone meanwhile: {unseen:,}; somebody else took them, or they expired."
    if moved.on_the_way:
        yield (
            f"On their way when it ended: {plural(moved.on_the_way, 'message')}. They are still in {errand.queue}, too, and may "
            "arrive twice."
        )
    if moved.withheld:
        yield f"Not given to us: {moved.withheld:,}. They are in {errand.queue}, which gives them to others, or holds them back."
        yield "  fix: see who consumes from it (rabbitmqctl list_consumers), end that, and run it again"
    if not errand.keeps_places and (errand.is_dry or moved.left or moved.failed):
        why = "quorum queues of this broker do not put it back where it was"
        if errand.keeps_places is None:
            why = "what kind of queue it is could not be asked, and some do not put it back where it was"
        yield f"What was looked at and left may be behind the others now: {why}."
    if moved.is_worn:
        yield (
            f"Not looked at: {max(0, unseen):,}. A message of {errand.queue} was given back so often that the broker would "
            "soon give it up (its delivery limit), so no more were taken. Redrive it without a filter, or raise the limit."
        )
    if moved.without_id:
        yield (
            f"{plural(moved.without_id, 'message')} had no message id and got a new one: had the run been cut off, "
            "a copy of one of them might carry another."
        )


def moved_json(moved: Moved, errand: Errand, seconds: float) -> dict[str, Any]:
    """The answer as programs read it."""
    return {
        "queue": errand.queue,
        "dry_run": errand.is_dry,
        "messages": errand.ready,
        "looked_at": moved.seen,
        "moved": moved.sent.total(),
        "to": [{"place": place, "count": count} for place, count in moved.sent.most_common()],
        "left": _reasons_json(moved.left),
        "failed": _reasons_json(moved.failed),
        "on_the_way": moved.on_the_way,
        "without_message_id": moved.without_id,
        "not_given": moved.withheld,
        "stopped": moved.is_stopped,
        "returned_too_often": moved.is_worn,
        "seconds": round(seconds, 3),
    }


def _reasons_json(reasons: Counter[Stays]) -> list[dict[str, Any]]:
    return [{"why": reason.why, "fix": reason.fix or None, "count": n} for reason, n in reasons.most_common()]


def _shown(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return counts.most_common(_MOST_LINES)


def code_of(moved: Moved) -> int:
    """0 when all that was meant was moved, 3 when some of it was, 1 when none was."""
    trouble = moved.failed.total() + moved.left.total() - moved.left[NOT_MEANT] + moved.withheld
    if not trouble and not moved.is_stopped and not moved.is_worn:
        return exit_codes.DONE
    return exit_codes.PARTLY_APPLIED if moved.is_any else exit_codes.FAILED
