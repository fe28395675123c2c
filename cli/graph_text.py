"""How wide texts are, and how they are made to fit."""

from unicodedata import category, east_asian_width

from delayctl.topology.wording import shorten

MONO = 0.605  # Of the size: no common monospaced font is wider.
SANS, BOLD = 0.6, 0.68  # Of the size, on average; DejaVu Sans is the widest of the common ones.
_LONGEST = 2_000


def cells(text: str) -> int:
    """How many places a text takes: most letters one, Chinese and the like two, accents that are put on top none."""
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def width(text: str, size: float, per_em: float = MONO) -> float:
    """How wide a text is at most."""
    return cells(text) * size * per_em


def fitted(text: str, room: float, size: float, per_em: float = MONO) -> str:
    """A text that fits: what is too long loses its middle, since names often differ at their ends."""
    clean = whole(text)
    most = max(int(room / (size * per_em) + 1e-6), 3)
    if cells(clean) <= most:
        return clean
    tail = (most - 1) // 2
    return f"{_taken(clean, most - 1 - tail)}…{_taken(clean[::-1], tail)[::-1]}"


def _taken(text: str, most: int) -> str:
    used = 0
    for position, char in enumerate(text):
        used += _cell(char)
        if used > most:
            return text[:position]
    return text


def whole(text: str) -> str:
    """A text as it can be written anywhere: on one line, with nothing in it that can't be seen."""
    return shorten(text, _LONGEST)
