"""How much memory something has: `4GiB`, `512MB`, or a number of bytes."""

import re

MAX_BYTES = 2**63 - 1
_SIZE = re.compile(r"([0-9]{1,19}) ?(|[kMGT]i?)[bB]?")
_UNITS = {"": 1}
_UNITS |= {letter: 1000**power for power, letter in enumerate("kMGT", 1)}
_UNITS |= {f"{letter}i": 1024**power for power, letter in enumerate("kMGT", 1)}


def parse_size(text: str) -> int:
    """Read a size into bytes, or raise ValueError."""
    found = _SIZE.fullmatch(text)
    size = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 1 <= size <= MAX_BYTES:
        raise ValueError(f"'{text[:40]}' is not a size")
    return size


def size_text(size: int) -> str:
    """Bytes in the unit that needs the fewest digits and no fraction."""
    fitting = [(size // unit, name) for name, unit in _UNITS.items() if size % unit == 0]
    count, name = min(fitting, key=lambda pair: pair[0])
    return f"{count}{name}B" if name else str(count)
