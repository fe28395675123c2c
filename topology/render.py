"""topology.yaml as a Jinja2 template: strict, sandboxed, and still knowing its own line numbers."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.topology.errors import InvalidTopology, Location
from delayctl.topology.instrument import BEGIN, END, instrument, mark
from delayctl.topology.lines import last_line, lines_after
from delayctl.topology.sandbox import Sandbox
from delayctl.topology.template_errors import problems_of
from jinja2 import Template
from jinja2.meta import find_undeclared_variables

_TEMPLATE = re.compile(r"\{[{%#]")
_MARK = re.compile(f"{BEGIN}([0-9]+){END}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text after templating; `lines[i]` is the line of the file that wrote line i."""

    file: str
    text: str
    lines: tuple[int, ...]

    @classmethod
    def untouched(cls, file: str, text: str) -> "Rendered":
        """Text that was no template."""
        return cls(file, text, (1, *lines_after(1, text)))

    def location(self, rendered_line: int) -> Location:
        """Where in the file a line of the rendered text comes from; both count from 1."""
        return Location(self.file, self.line(rendered_line))

    def line(self, rendered_line: int) -> int:
        """The line of the file that wrote a line of the rendered text; both count from 1."""
        if 0 < rendered_line <= len(self.lines):
            return self.lines[rendered_line - 1]
        return self.lines[-1] if rendered_line > 0 and self.lines else 1


def render(text: str, values: Mapping[str, object], *, file: str) -> Rendered:
    """Fill in a template, or raise InvalidTopology."""
    if not _TEMPLATE.search(text):
        return Rendered.untouched(file, text)
    environment = Sandbox()
    try:
        template = _compile(environment, text)
        marked = "".join(template.generate(dict(values)))
    except Exception as error:  # A template may raise anything, as Jinja2's documentation warns.
        raise InvalidTopology(problems_of(error, environment, text, values, file=file)) from error
    return _unmark(file, marked)


def names_used(text: str) -> frozenset[str] | None:
    """The names that a template takes from outside, or None where it is none that can be rendered."""
    if not _TEMPLATE.search(text):
        return frozenset()
    environment = Sandbox()
    environment.globals.clear()  # A value may have the name of a function, and is then what the template uses.
    try:
        return frozenset(find_undeclared_variables(environment.parse(text)))
    except Exception:  # What is wrong with it, and in which line, is for `render` to say.
        return None


def _compile(environment: Sandbox, text: str) -> Template:
    with warnings.catch_warnings():
        # Python remarks on `5[1:2]` in the code that Jinja2 makes; running it says so with a line.
        warnings.simplefilter("ignore", SyntaxWarning)
        return environment.from_string(instrument(environment.parse(text), environment))


def _unmark(file: str, marked: str) -> Rendered:
    """Take the marks out; a line belongs to the line of the file that wrote its first visible character."""
    pieces = _MARK.split(f"{mark(1)}{marked}")[1:]
    numbers, is_blank = [1], True
    for begin, piece in zip(map(int, pieces[::2]), pieces[1::2], strict=True):
        if is_blank:
            numbers[-1] = begin
        last = piece
        if not piece.isprintable():  # It may have line breaks.
            numbers += lines_after(begin, piece)
            last = last_line(piece)
            is_blank = is_blank or last != piece
        is_blank = is_blank and not last.strip(" ")
    return Rendered(file, "".join(pieces[1::2]), tuple(numbers))
