"""Printing that outlives its reader: work that is under way is finished, whoever listens."""

import os
import sys

import click


def tell(text: str) -> None:
    """Print a line of the answer; once stdout is closed or full, the rest is told to nobody."""
    try:
        click.echo(text)
    except OSError:
        # What was begun is carried through: `apply | head` must not leave half of it undone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
