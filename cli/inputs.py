"""Files and options to values."""

import errno
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO

from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology, Location, Problem
from delayctl.topology.parse import read_spec
from delayctl.topology.render import Rendered, names_used, render
from delayctl.topology.source import load, plain
from delayctl.topology.spec import Spec
from delayctl.topology.wording import STDIN, did_you_mean, quoted, shorten

_STDIN_NUMBER = 0
MAX_FILE_BYTES = 4 * 1024 * 1024
_LONGEST_LIST = 400


def read_text(file: str, *, missing: str = "check the path, or start with: delayctl init") -> str:
    """A file's text, or that of stdin, or InvalidTopology with the reason; `missing` is what to do where there is no such file."""
    try:
        with _opened(file) as source:
            content = source.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        fix = missing if isinstance(error, FileNotFoundError) else "name a readable file"
        raise InvalidTopology([Problem(f"the file can't be read: {error.strerror}", Location(file), fix)]) from error
    if len(content) > MAX_FILE_BYTES:
        problem = Problem(
            f"the file is larger than {MAX_FILE_BYTES:,} bytes",
            Location(file),
            "use a template loop instead of listing",
        )
        raise InvalidTopology([problem])
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = Problem(
            f"byte 0x{content[error.start]:02x} is not UTF-8", Location(file, line), "save the file as UTF-8"
        )
        raise InvalidTopology([problem]) from error


def _opened(file: str) -> AbstractContextManager[IO[bytes]]:
    if file != STDIN:
        return Path(file).open("rb")
    content: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if content is None:  # A shell closes it by <&-.
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return nullcontext(content)


def template_values(values_files: Iterable[str], assignments: Iterable[str]) -> dict[str, object]:
    """The names a template may use: files first, then --set, the later winning."""
    values: dict[str, object] = {}
    for file in values_files:
        text = read_text(file, missing="check the path given with --values")
        content = plain(load(Rendered.untouched(file, text)))
        if content is None:
            continue
        if not isinstance(content, dict):
            raise DelayctlError("a values file must be a mapping", where=file, fix="write 'name: value' lines")
        values |= content
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign:
            raise BadOption(f"--set {shorten(name)!r} is not NAME=VALUE", fix="write --set region=eu")
        if not name.isidentifier():
            fix = "a name is letters, digits and _, and begins with no digit: write --set region=eu"
            raise BadOption(f"--set: {quoted(name)} is no name", fix=fix)
        values[name] = plain(load(Rendered.untouched(f"--set {name}", value))) if value else ""
    return values


def read_topology_file(file: str, values: dict[str, object], *, assignments: Iterable[str] = ()) -> Spec:
    """Read, render and parse a topology file, which has to use what the assignments name."""
    return read_spec(_read_template(file, assignments), values, file=file)


def render_file(file: str, values: dict[str, object], *, assignments: Iterable[str] = ()) -> Rendered:
    """Read and render a topology file, which has to use what the assignments name."""
    return render(_read_template(file, assignments), values, file=file)


def _read_template(file: str, assignments: Iterable[str]) -> str:
    """A template's text, or BadOption where --set names what it does not use; files of values may be shared by many."""
    text, names = read_text(file), [assignment.partition("=")[0] for assignment in assignments]
    used = names_used(text) if names else None
    if used is None:
        return text
    for name in names:
        if name not in used:
            what = f"--set {shorten(name)}: the template uses no such name{did_you_mean(name, sorted(used))}"
            raise BadOption(what, fix=_one_of(used))
    return text


def _one_of(used: frozenset[str]) -> str:
    if not used:
        return "leave it out: the file takes no values"
    return f"leave it out, or set one of {shorten(', '.join(sorted(used)), _LONGEST_LIST)}"


def refuse_inputs(option: str, file: str | None, topology: str, values_files: Iterable[str]) -> None:
    """Raise BadOption where an answer would be written over what it is made from."""
    inputs = [(topology, "the topology file"), *((values, "the file given with --values") for values in values_files)]
    for source, what in inputs:
        if file is not None and _is_same(file, source):
            raise BadOption(f"{option} is {what} itself", where=file, fix="name another file")


def _is_same(file: str, source: str) -> bool:
    try:
        return Path(file).is_file() and os.path.samefile(file, _STDIN_NUMBER if source == STDIN else source)
    except OSError:
        return False  # Whoever reads or writes it says what is wrong with it.
