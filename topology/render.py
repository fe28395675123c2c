"""topology.yaml as a Jinja2 template: strict, sandboxed, and still knowing its own line numbers."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from delayctl.topology.errors import InvalidTopology, Location
from delayctl.topology.instrument import BEGIN, END, TEXT, VALUE, instrument
from delayctl.topology.sandbox import Sandbox
from delayctl.topology.template_errors import problems_of
from jinja2 import Template

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # What YAML counts as the end of a line.
_YAML_ONLY = re.compile("[\x85\u2028\u2029]")  # To an editor the line goes on.
_TEMPLATE = re.compile(r"\{[{%#]")
_MARK = re.compile(f"{BEGIN}([{TEXT}{VALUE}])([0-9]+){END}")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text after templating; `lines[i]` is the line of the file that wrote line i."""

    file: str
    text: str
    lines: tuple[int, ...]

    @classmethod
    def untouched(cls, file: str, text: str) -> "Rendered":
        """Text that was no template."""
        return cls(file, text, (1, *_lines_after(TEXT, 1, text)))

    def location(self, rendered_line: int) -> Location:
        """Where in the file a line of the rendered text comes from; both count from 1."""
        index = min(rendered_line, len(self.lines)) - 1
        return Location(self.file, self.lines[index] if index >= 0 else 1)


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


def _compile(environment: Sandbox, text: str) -> Template:
    with warnings.catch_warnings():
        # Python remarks on `5[1:2]` in the code that Jinja2 makes; running it says so with a line.
        warnings.simplefilter("ignore", SyntaxWarning)
        return environment.from_string(instrument(environment.parse(text), environment))


def _unmark(file: str, marked: str) -> Rendered:
    """Take the marks out; a line belongs to the line of the file that wrote its first visible character."""
    first, *marks = _MARK.split(marked)
    pieces, numbers, is_blank = [first], [1], True
    for kind, begin, piece in zip(marks[::3], map(int, marks[1::3]), marks[2::3], strict=True):
        pieces.append(piece)
        if is_blank:
            numbers[-1] = begin
        if piece.isprintable():  # And so without any line break.
            is_blank = is_blank and not piece.strip(" ")
            continue
        following = _lines_after(kind, begin, piece)
        numbers += following
        is_blank = (is_blank or bool(following)) and not piece.rpartition("\n")[2].strip(" ")
    return Rendered(file, "".join(pieces), tuple(numbers))


def _lines_after(kind: str, begin: int, piece: str) -> Sequence[int]:
    """For each line break of a piece, the line of the file that follows it."""
    breaks = LINE_BREAK.findall(piece)
    if kind == VALUE:
        return [begin] * len(breaks)
    if not _YAML_ONLY.search(piece):
        return range(begin + 1, begin + 1 + len(breaks))
    return [begin + count for count in accumulate(not _YAML_ONLY.match(line_break) for line_break in breaks)]
