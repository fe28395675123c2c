"""Small turns of phrase that messages share."""

import difflib
from collections.abc import Iterable

MAX_QUOTED = 40


def shorten(text: str) -> str:
    """Cut a value that is repeated in a message to a length that can be read."""
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"


def plural(count: int, noun: str) -> str:
    """A count with its noun: `1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def near(name: str, known: Iterable[str]) -> str | None:
    """The known name that this one most looks like, if any does."""
    return next(iter(difflib.get_close_matches(name[:255], list(known), n=1, cutoff=0.75)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion to put behind a message, or nothing."""
    suggestion = near(name, known)
    return f" (did you mean '{suggestion}'?)" if suggestion else ""


def misspelt(name: str, known: Iterable[str]) -> str | None:
    """The known dotted name that differs from this one in the spelling of a single word, if there is one.

    `order.exchange` looks like `orders.exchange` misspelt; `orders.2.queue` is just a neighbour of `orders.1.queue`.
    """
    words = name.split(".")
    for other in known:
        others = other.split(".")
        different = [pair for pair in zip(words, others, strict=False) if pair[0] != pair[1]]
        if (
            len(words) == len(others)
            and len(different) == 1
            and difflib.SequenceMatcher(None, *different[0]).ratio() >= 0.75
        ):
            return other
    return None
