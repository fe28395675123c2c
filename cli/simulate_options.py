"""What the options of simulate say, each in a word: `order.created=1000/s`, `5000/s@12m+30s`, `10m+5m`."""

from collections.abc import Iterable

from delayctl.simulator.what_if_traffic import Span, Stretch
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption
from delayctl.topology.rate import Rate
from delayctl.topology.size import parse_size
from delayctl.topology.wording import quoted

A_LADDER = "a file with a ladder (delay: any, or any: true beside levels)"
LONGEST_MS = 3650 * 86_400_000  # Ten years, as long as the longest wait.
_RATE_FIX = "write it as 1000/s, 5000/m, 20000/h or 1000000/d"
_SPAN_FIX = "write when and for how long, such as 10m+5m"
_BURST_FIX = "write the rate, when and for how long, such as 5000/s@12m+30s"


def read_rates(option: str, texts: Iterable[str]) -> dict[str | None, Rate]:
    """Rates by what they are for; None is for all that is not named."""
    found: dict[str | None, Rate] = {}
    for text in texts:
        name, rate = _named(text)
        if name in found:
            raise BadOption(f"{option} is given twice{_of(name)}", fix="leave out all but one")
        found[name] = read_rate(option, rate)
    return found


def read_rate(option: str, text: str) -> Rate:
    """A rate, or BadOption."""
    try:
        return Rate.parse(text)
    except ValueError as error:
        raise BadOption(f"{option}: {error}", fix=_RATE_FIX) from error


def read_bursts(texts: Iterable[str]) -> dict[str | None, tuple[Stretch, ...]]:
    """Bursts by the key that comes in them; None is for all."""
    found: dict[str | None, tuple[Stretch, ...]] = {}
    for text in texts:
        name, burst = _named(text)
        rate, sign, when = burst.partition("@")
        if not sign:
            raise BadOption(f"--burst {quoted(text)} does not say when", fix=_BURST_FIX)
        stretch = Stretch(read_span("--burst", when, fix=_BURST_FIX), read_rate("--burst", rate))
        found[name] = (*found.get(name, ()), stretch)
    return found


def read_spans(option: str, texts: Iterable[str]) -> dict[str | None, tuple[Span, ...]]:
    """Stretches of time by what they are for; None is for all."""
    found: dict[str | None, tuple[Span, ...]] = {}
    for text in texts:
        name, span = _named(text)
        found[name] = (*found.get(name, ()), read_span(option, span))
    return found


def read_span(option: str, text: str, *, fix: str = _SPAN_FIX) -> Span:
    """A stretch of time, or BadOption."""
    start, sign, length = text.partition("+")
    if not sign:
        raise BadOption(f"{option} {quoted(text)} does not say for how long", fix=fix)
    begin, lasts = (read_duration(option, part, fix=fix) for part in (start, length))
    if not lasts:
        raise BadOption(f"{option} {quoted(text)} lasts no time", fix=fix)
    return Span(begin, begin + lasts)


def read_duration(option: str, text: str, *, fix: str = "write it as 500ms, 10s, 1m30s, 2h or 1d") -> int:
    """A length of time in milliseconds, or BadOption."""
    try:
        ms = Duration.parse(text).ms
    except ValueError as error:
        raise BadOption(f"{option}: {error}", fix=fix) from error
    if ms > LONGEST_MS:
        raise BadOption(f"{option}: {text} is more than ten years", fix="choose less")
    return ms


def read_size(option: str, text: str) -> int:
    """A number of bytes, or BadOption."""
    try:
        return parse_size(text)
    except ValueError as error:
        raise BadOption(f"{option}: {error}", fix="write it as 500, 2kB or 1MiB") from error


def _named(text: str) -> tuple[str | None, str]:
    """A key may have any letter in it, a value has no equals sign."""
    name, sign, value = text.rpartition("=")
    return (name if sign else None), value


def _of(name: str | None) -> str:
    return "" if name is None else f" for {quoted(name)}"
