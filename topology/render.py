"""topology.yaml as a Jinja2 template: sandboxed, strict, and still knowing its own line numbers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from delayctl.topology.errors import InvalidTopology, Location, Problem
from delayctl.topology.wording import did_you_mean, shorten
from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, UndefinedError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.runtime import Context
from jinja2.sandbox import SandboxedEnvironment

MAX_RENDERED = 8 * 1024 * 1024
MAX_ITERATIONS = 200_000
_GIVE = "give it with --set NAME=VALUE or --values FILE, or write {{ name | default(…) }}"
_MARK = re.compile("\ue000([0-9]+)\ue001")


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text after templating; `lines[i]` is the line of the file that wrote line i."""

    file: str
    text: str
    lines: tuple[int, ...]

    def location(self, rendered_line: int) -> Location:
        """Where in the file a line of the rendered text comes from; both count from 1."""
        index = min(rendered_line, len(self.lines)) - 1
        return Location(self.file, self.lines[index] if index >= 0 else 1)


def render(text: str, values: Mapping[str, object], *, file: str) -> Rendered:
    """Fill in a template, or raise InvalidTopology."""
    environment = _Environment(undefined=StrictUndefined, extensions=[_LineMarks], keep_trailing_newline=True)
    environment.globals = {"range": _Budget(MAX_ITERATIONS).range}
    if "\ue000" in text:
        raise _invalid(file, 1, "the file holds a character of the private use area (U+E000)", "remove it")
    try:
        template = environment.from_string(text)
        marked = _bounded_join(template.generate(dict(values)))
    except TemplateSyntaxError as error:
        raise _invalid(
            file,
            error.lineno,
            f"template: {error.message}",
            "see the Jinja2 syntax; {% raw %} keeps braces as they are",
        ) from error
    except SecurityError as error:
        raise _invalid(
            file, _line_of(error), f"template: {error}", "templates may use values, loops and filters only"
        ) from error
    except UndefinedError as error:
        raise InvalidTopology(_undefined_names(environment, text, values, file) or [_undefined(error, file)]) from error
    except TemplateError as error:
        raise _invalid(file, _line_of(error), f"template: {error.message}", "correct the expression") from error
    except (ArithmeticError, TypeError, ValueError, LookupError, AttributeError, MemoryError, RecursionError) as error:
        raise _invalid(
            file, _line_of(error), f"template: {shorten(str(error)) or type(error).__name__}", "correct the expression"
        ) from error
    return _unmark(file, marked)


class _LineMarks(Extension):
    """Writes the line number in front of every line that a template's own text begins."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        for token in stream:
            if token.type != "data":
                yield token
                continue
            first, *rest = token.value.split("\n")
            marked = [first] + [f"\ue000{token.lineno + i}\ue001{line}" for i, line in enumerate(rest, 1)]
            yield Token(token.lineno, "data", "\n".join(marked))


class _TooLarge(ValueError):
    pass


class _Environment(SandboxedEnvironment):
    """A sandbox that also stops an expression from filling the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        sizes = [len(side) for side in (left, right) if isinstance(side, str | list | tuple)]
        counts = [side for side in (left, right) if isinstance(side, int)]
        if sizes and counts and sizes[0] * counts[0] > MAX_RENDERED:
            raise _TooLarge("a repetition grows beyond all bounds")
        if operator == "**" and any(abs(count) > 1_000 for count in counts):
            raise _TooLarge("a power grows beyond all bounds")
        return super().call_binop(context, operator, left, right)


class _Budget:
    """A `range` whose calls share one number of steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def range(self, *bounds: int) -> range:
        """As Python's range, while the budget lasts."""
        result = range(*bounds)
        self._steps -= len(result)
        if self._steps < 0:
            raise _TooLarge(f"the loops take more than {MAX_ITERATIONS} steps")
        return result


def _undefined_names(
    environment: SandboxedEnvironment, text: str, values: Mapping[str, object], file: str
) -> list[Problem]:
    """Every name that is used without a value, not only the one that rendering fell over."""
    tree = environment.parse(text)
    unknown = meta.find_undeclared_variables(tree) - set(values) - {"range"}
    guarded = {
        id(name)
        for guard in tree.find_all((nodes.Filter, nodes.Test))
        if guard.name in {"default", "d", "defined", "undefined"}
        for name in guard.find_all(nodes.Name)
    }
    return [
        Problem(
            f"template: '{name.name}' is undefined{did_you_mean(name.name, values)}", Location(file, name.lineno), _GIVE
        )
        for name in tree.find_all(nodes.Name)
        if name.ctx == "load" and name.name in unknown and id(name) not in guarded
    ]


def _undefined(error: UndefinedError, file: str) -> Problem:
    return Problem(f"template: {error.message}", Location(file, _line_of(error)), _GIVE)


def _bounded_join(chunks: Iterator[str]) -> str:
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_RENDERED:
            raise _TooLarge(f"the rendered text is larger than {MAX_RENDERED} characters")
        parts.append(chunk)
    return "".join(parts)


def _unmark(file: str, marked: str) -> Rendered:
    lines, numbers, current = [], [], 1
    for line in marked.split("\n"):
        if mark := _MARK.search(line):
            current = int(mark.group(1))
        numbers.append(current)
        lines.append(_MARK.sub("", line))
    return Rendered(file, "\n".join(lines), tuple(numbers))


def _line_of(error: BaseException) -> int:
    """The template line an error was raised from; Jinja2 rewrites tracebacks to name it."""
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _invalid(file: str, line: int, message: str, fix: str) -> InvalidTopology:
    return InvalidTopology([Problem(message, Location(file, line), fix)])
