"""How often something happens: `200/s`, `5000/m`, `1000000/d`."""

import re
from dataclasses import dataclass
from fractions import Fraction

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RATE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)/([smhd])")
_MOST = 10**12  # What is printed has no more digits than what is read.


@dataclass(frozen=True, slots=True, order=True)
class Rate:
    """Events per second, exactly; printed in the shortest unit that needs no fraction."""

    per_second: Fraction

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """Read a rate, or raise ValueError."""
        found = _RATE.fullmatch(text)
        if not found or not Fraction(found[1]):
            raise ValueError(f"'{text[:40]}' is not a rate")
        return cls(Fraction(found[1]) / _UNITS[found[2]])

    def __str__(self) -> str:
        counts = {unit: self.per_second * seconds for unit, seconds in _UNITS.items()}
        for digits in (0, 6):
            for unit, count in counts.items():
                if (count * 10**digits).denominator == 1 and count < _MOST:
                    return f"{_decimal(count, digits)}/{unit}"
        return f"{_decimal(counts['d'], 6)}/d"


def _decimal(count: Fraction, digits: int) -> str:
    """A count with so many digits behind the point, and no more zeros than it needs."""
    whole, rest = divmod(round(count * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}}".rstrip("0").rstrip(".") if digits else str(whole)
