"""What went wrong in a template, with the line of the file it went wrong in."""

import re
from collections.abc import Mapping, Sequence

from delayctl.topology.budget import TooLarge
from delayctl.topology.errors import Location, Problem
from delayctl.topology.instrument import OneFileOnly
from delayctl.topology.sandbox import Sandbox
from delayctl.topology.wording import did_you_mean, near, shorten
from jinja2 import TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.meta import TrackingCodeGenerator
from jinja2.parser import Parser

_GIVE = "give it with --set NAME=VALUE or --values FILE, or write {{ name | default(…) }}"
_ASKS_FOR_A_VALUE = frozenset({"default", "d", "defined", "undefined"})
_UNKNOWN = re.compile(r"No (filter|test) named '(.*)'\.")
_UNKNOWN_TAG = re.compile(r"Encountered unknown tag '(.*?)'\..*", re.DOTALL)
_NOT_CLOSED = re.compile(r"The innermost block that needs to be closed is '(\w+)'")
_TAGS = (
    "block",
    "call",
    "elif",
    "else",
    "endfor",
    "endif",
    "endmacro",
    "endset",
    "filter",
    "for",
    "if",
    "macro",
    "raw",
    "set",
)
_INNER_NAME = re.compile(r"\b(?:sync_)?(?:do|test)_(?=\w+\(\))")  # Jinja2's name for a filter or a test.
_LONGEST_REASON = 200


def problems_of(
    error: Exception, environment: Sandbox, text: str, values: Mapping[str, object], *, file: str
) -> list[Problem]:
    """An error of parsing, compiling or rendering, in words."""
    match error:
        case TemplateSyntaxError():
            return [_problem(file, error.lineno, *_syntax(error, environment))]
        case SecurityError():
            return [_problem(file, _line_of(error), str(error), "templates may use values, loops and filters only")]
        case UndefinedError():
            return _undefined(error, environment, text, values, file)
        case RecursionError() | SyntaxError():
            # Jinja2 compiles templates to Python, which has a limit of its own for blocks in blocks.
            fix = "nest fewer brackets, loops and ifs"
            return [_problem(file, _line_of(error), "nested too deeply", fix)]
        case TooLarge():
            return [_problem(file, _line_of(error), str(error), "make it smaller: no topology needs that much")]
        case KeyError():
            return [_problem(file, _line_of(error), f"there is no {error}", "correct the expression")]
        case _:
            reason = _INNER_NAME.sub("", str(error)) or type(error).__name__
            return [_problem(file, _line_of(error), reason, "correct the expression")]


def _syntax(error: TemplateSyntaxError, environment: Sandbox) -> tuple[str, str]:
    message = error.message or "not Jinja2"
    if unknown := _UNKNOWN.fullmatch(message):
        kind, name = unknown.groups()
        known = [
            word for word in (environment.filters if kind == "filter" else environment.tests) if word.isidentifier()
        ]
        return f"no {kind} named '{name}'{did_you_mean(name, known)}", _use_one_of(name, sorted(known))
    tag = _UNKNOWN_TAG.fullmatch(message)
    if unclosed := _NOT_CLOSED.search(message):
        noticed = f", but '{tag[1]}' stands here" if tag else ""
        return f"the block '{unclosed[1]}' is not closed{noticed}", f"close it with {{% end{unclosed[1]} %}}"
    if tag and tag[1] in _TAGS:
        return f"'{tag[1]}' stands here without the block that it belongs to", "remove it, or open the block before it"
    if tag:
        return f"unknown tag '{tag[1]}'{did_you_mean(tag[1], _TAGS)}", _use_one_of(tag[1], _TAGS)
    if isinstance(error, OneFileOnly):
        return message, "write it out here, or as a macro"
    return message, "see the Jinja2 syntax; {% raw %} keeps braces as they are"


def _use_one_of(name: str, known: Sequence[str]) -> str:
    meant = near(name, known)
    return f"write {meant}" if meant else f"use one of: {', '.join(known)}"


def _undefined(
    error: UndefinedError, environment: Sandbox, text: str, values: Mapping[str, object], file: str
) -> list[Problem]:
    """Every name that is used without a value, not only the one that rendering fell over."""
    tree = environment.parse(text)
    guards = (guard for guard in tree.find_all((nodes.Filter, nodes.Test)) if guard.name in _ASKS_FOR_A_VALUE)
    optional = {name.name for guard in guards for name in guard.find_all(nodes.Name)}
    unknown = _undeclared(tree, environment) - values.keys() - optional - environment.globals.keys()
    problems = [
        _problem(file, name.lineno, f"'{name.name}' is undefined{did_you_mean(name.name, values)}", _GIVE)
        for name in tree.find_all(nodes.Name)
        if name.ctx == "load" and name.name in unknown
    ]
    if error.message not in {f"'{name}' is undefined" for name in unknown}:
        fix = (
            _GIVE
            if (error.message or "").endswith("is undefined")
            else "check the name and the value it is looked for in"
        )
        problems.append(_problem(file, _line_of(error), error.message or "undefined", fix))
    return list(dict.fromkeys(problems))


def _undeclared(tree: nodes.Template, environment: Sandbox) -> set[str]:
    """The names that a template uses and does not set, as `jinja2.meta` finds them, without calculating constants."""
    finder = TrackingCodeGenerator(environment)
    finder.optimizer = None
    finder.visit(tree)
    return finder.undeclared_identifiers


def _problem(file: str, line: int | None, message: str, fix: str) -> Problem:
    reason = shorten(message[:1].lower() + message[1:].rstrip("."), _LONGEST_REASON)
    return Problem(f"template: {reason}", Location(file, line), fix)


def _line_of(error: BaseException) -> int | None:
    """The template line that was read, compiled or run when an error was raised, where that can be told."""
    line, trace = None, error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno  # Jinja2 rewrites tracebacks to name lines of the template.
        elif isinstance(parser := frame.f_locals.get("self"), Parser):
            line = parser.stream.current.lineno
        elif isinstance(node := frame.f_locals.get("node"), nodes.Node):
            line = node.lineno
        trace = trace.tb_next
    return line
