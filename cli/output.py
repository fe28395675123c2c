"""Answers, to stdout or to a file. Printing outlives its reader: work that is under way is finished, whoever listens."""

import os
import sys
from pathlib import Path

import click
from delayctl.topology.errors import DelayctlError


def tell(text: str) -> None:
    """Print a line of the answer; once stdout is closed or full, the rest is told to nobody."""
    try:
        click.echo(text)
    except OSError:
        # What was begun is carried through: `apply | head` must not leave half of it undone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(file: str, text: str, *, what: str = "the file", overwrite: bool = True) -> None:
    """Write an answer to a file, or raise DelayctlError with the reason."""
    try:
        with Path(file).open("w" if overwrite else "x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError as error:
        raise DelayctlError(
            f"{what} is there already", where=file, fix="name another file, or overwrite it with --force"
        ) from error
    except OSError as error:
        raise DelayctlError(
            f"{what} can't be written: {error.strerror}", where=file, fix="name a place that can be written"
        ) from error
