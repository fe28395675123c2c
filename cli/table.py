"""Columns side by side, for views."""

from collections.abc import Iterator, Sequence

import click
from delayctl.topology.wording import shorten

LONGEST_NAME = 30


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side: names to the left, figures to the right; colours take no room."""
    cells = [headings, *((shorten(row[0], LONGEST_NAME), *row[1:]) for row in rows)]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(headings))]
    return ["  ".join((row[0].ljust(widths[0]), *_right(row[1:], widths[1:]))) for row in cells]


def _right(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for cell, width in zip(cells, widths, strict=True):
        yield " " * (width - len(click.unstyle(cell))) + cell
