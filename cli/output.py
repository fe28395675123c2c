"""Answers, to stdout or to a file. Printing outlives its reader: work that is under way is finished, whoever listens."""

import codecs
import io
import os
import secrets
import sys
from pathlib import Path

import click
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import escaped

_ESCAPES = "delayctl.escapes"


def escape_what_is_no_text() -> None:
    """Have stdout write escapes for what it can't write: keys and file names may hold any bytes, and terminals may know few letters."""
    codecs.register_error(_ESCAPES, _as_escapes)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors=_ESCAPES)


def _as_escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    said = escaped(error.object[error.start : error.end])
    return "".join(c if c.isascii() else c.encode("unicode_escape").decode("ascii") for c in said), error.end


def tell(text: str) -> None:
    """Print a line of the answer; once stdout is closed or full, the rest is told to nobody."""
    try:
        click.echo(text)
    except OSError:
        # What was begun is carried through: `apply | head` must not leave half of it undone.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(file: str, content: str | bytes, *, what: str = "the file", overwrite: bool = True) -> None:
    """Write an answer to a file, or raise DelayctlError with the reason."""
    try:
        with Path(file).open("wb" if overwrite else "xb") as target:
            target.write(content.encode() if isinstance(content, str) else content)
    except FileExistsError as error:
        if Path(file).is_dir():
            raise _is_folder(file) from error
        raise DelayctlError(
            f"{what} is there already", where=file, fix="name another file, or overwrite it with --force"
        ) from error
    except IsADirectoryError as error:
        raise _is_folder(file) from error
    except OSError as error:
        raise _unwritten(file, what, error) from error


def replace_file(file: str, content: str, *, what: str = "the file") -> None:
    """Write a file that others read at any moment: they find the old one or the new one, never half of it."""
    target = Path(file)
    # Collectors read what ends as the file does: this one does not.
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as written:
            try:
                written.write(content.encode())
                written.flush()
                beside.replace(target)
            except OSError:
                beside.unlink()
                raise
    except OSError as error:
        raise _unwritten(file, what, error) from error


def _is_folder(file: str) -> DelayctlError:
    return DelayctlError("this is a directory", where=file, fix="name a file in it")


def _unwritten(file: str, what: str, error: OSError) -> DelayctlError:
    fix = "name a place that can be written"
    return DelayctlError(f"{what} can't be written: {error.strerror}", where=file, fix=fix)
