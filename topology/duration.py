"""Durations as people write them: `500ms`, `10s`, `1m30s`, `2h`, `1d`."""

import re
from dataclasses import dataclass

from delayctl.topology.wording import MAX_QUOTED, quoted

MAX_TTL_MS = 315_360_000_000  # The broker refuses a longer x-message-ttl.

_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_PATTERN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A span of time in whole milliseconds."""

    ms: int

    @classmethod
    def parse(cls, text: str) -> "Duration":
        """Read a duration, or raise ValueError with the reason."""
        match = _PATTERN.fullmatch(text) if len(text) <= MAX_QUOTED else None
        if not match or not text:
            raise ValueError(f"{quoted(text)} is not a duration")
        return cls(sum(int(count) * size for count, (_, size) in zip(match.groups(), _UNITS, strict=True) if count))

    def __str__(self) -> str:
        parts, rest = [], self.ms
        for unit, size in _UNITS:
            count, rest = divmod(rest, size)
            if count:
                parts.append(f"{count}{unit}")
        return "".join(parts) or "0s"
