"""Where templates run: no way from a value to the Python behind it, and bounds to time and memory.

Jinja2's sandbox keeps a template from reaching what it must not reach. It does not keep one from filling the memory
with `'x' * 10 ** 9`, with a list of lists of lists, or with a filter of a huge width: that is what the budget is for.
"""

import json
from collections.abc import Callable, Iterator, Sized
from functools import wraps
from typing import Any

from delayctl.topology.budget import (
    ITEM,
    MAX_TURNS,
    Budget,
    TooLarge,
    check_format,
    check_operation,
    weigh,
    weigh_growth,
)
from delayctl.topology.instrument import mark
from delayctl.topology.lines import LINE_BREAK
from jinja2 import StrictUndefined, Undefined, pass_context
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

# What is left out of Jinja2's filters is for HTML, reaches for attributes, or rolls dice.
_LOOKING = ("abs", "count", "d", "default", "first", "float", "int", "last", "length", "round")
_SIFTING = (
    *("dictsort", "groupby", "items", "list", "map", "max", "min", "reject", "rejectattr", "reverse"),
    *("select", "selectattr", "sort", "unique"),
)
_GROWING = (
    *("batch", "capitalize", "center", "indent", "join", "lower", "replace", "slice", "string"),
    *("title", "tojson", "trim", "truncate", "upper", "urlencode"),
)
_GROWING_METHODS = frozenset({"center", "expandtabs", "join", "ljust", "replace", "rjust", "translate", "zfill"})


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one rendering."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        self._budget = Budget()
        # Not optimized: an error in a constant expression must be raised where it stands, not while compiling.
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True, optimized=False)
        self.globals = {"range": _range}
        self.filters = {
            **{name: FILTERS[name] for name in _LOOKING},
            **{name: self._sifting(FILTERS[name]) for name in _SIFTING},
            **{name: self._growing(FILTERS[name]) for name in _GROWING},
            "format": self._formatted,
            "sum": self._total,
            # The names that instrument.py puts into the tree; no template can spell them.
            "made!": self._made,
            "joined!": self._joined,
            "spelt!": self._spelt,
            "turn!": self._turn,
            "written!": self._written,
        }

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate, unless the result would not fit."""
        check_operation(operator, left, right)
        return self._made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 (so that any keyword can be passed on)
        """Call a function or a method, unless its result would not fit."""
        if getattr(__obj, "__name__", None) in _GROWING_METHODS:
            __self._budget.work(weigh_growth(getattr(__obj, "__self__", ""), (*args, *kwargs.values())))
        return super().call(__context, __obj, *args, **kwargs)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Refuse `str.format`, which reaches for attributes and fills up to any width."""
        if super().wrap_str_format(value) is not None:
            raise SecurityError("str.format is not allowed, use ~ or the filter format")
        return None

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        """What an attribute is that must not be reached; of a name without a value, that name."""
        return obj if isinstance(obj, Undefined) else super().unsafe_undefined(obj, attribute)

    # These are given the context, so that the compiler does not take what they make for constants.
    @pass_context
    def _spelt(self, _context: Context, value: Any) -> Any:
        self._budget.write(weigh(value))
        return _spell(value)

    @pass_context
    def _written(self, _context: Context, value: Any, line: int) -> Any:
        """A value as text; what it breaks into belongs to the one line of the file that wrote it."""
        self._budget.write(weigh(value))
        text = _spell(value)
        if isinstance(text, str) and not text.isprintable():
            return LINE_BREAK.sub(rf"\g<0>{mark(line)}", text)
        return text

    def _made(self, value: Any) -> Any:
        """A value that was just made, if it is of a reasonable size."""
        self._budget.work(weigh(value))
        return value

    def _joined(self, parts: list[Any]) -> str:
        """The parts of `a ~ b`, weighed before they are put together."""
        return "".join(str(_spell(part)) for part in self._made(parts))

    @pass_context
    def _turn(self, _context: Context, letters: int, turns: int) -> None:
        self._budget.turn(turns, letters)

    def _formatted(self, text: object, *args: object, **kwargs: object) -> str:
        check_format(str(text))
        self._made([*args, *kwargs.values()])
        return str(text) % (kwargs or args)

    def _total(self, numbers: Any, attribute: str | None = None, start: float = 0) -> Any:
        if not isinstance(start, int | float):
            raise TypeError("sum adds numbers only")
        return FILTERS["sum"](self, numbers, attribute, start)

    def _sifting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that goes over a value and gives back parts of it."""

        @wraps(function)
        def sift(*args: Any, **kwargs: Any) -> Any:
            value = _defined(args[_position(function)])
            self._budget.work(len(value) * ITEM if isinstance(value, Sized) else ITEM)
            return function(*args, **kwargs)

        return sift

    def _growing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that writes a text or fills up a list: asked first whether the result will fit."""

        @wraps(function)
        def grow(*args: Any, **kwargs: Any) -> Any:
            place = _position(function)
            before, value, options = args[:place], _defined(args[place]), args[place + 1 :]
            value = list(value) if isinstance(value, Iterator) else value
            self._budget.work(weigh_growth(value, (*options, *kwargs.values())))
            return function(*before, value, *options, **kwargs)

        return grow


def _position(function: Callable[..., Any]) -> int:
    """Where a filter takes its value: some take the context or the environment first."""
    return 1 if hasattr(function, "jinja_pass_arg") else 0


def _defined(value: Any) -> Any:
    """The value, unless it is none: some filters would complain about Jinja2's inner types instead of the name."""
    if isinstance(value, Undefined):
        str(value)
    return value


def _range(*bounds: int) -> range:
    """As Python's range, within reason."""
    result = range(*bounds)
    # Not len(), which fails for ranges beyond 2**63.
    if result[MAX_TURNS:]:
        raise TooLarge(f"a range has more than {MAX_TURNS:,} steps")
    return result


def _spell(value: Any) -> Any:
    """A value as YAML spells it."""
    if type(value) in (str, int):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | range | dict):
        whole = list(value) if isinstance(value, range) else value
        return json.dumps(whole, ensure_ascii=False, default=lambda inner: str(_spell(inner)))
    if isinstance(value, str | int | float | Undefined):
        return value
    raise TypeError(f"a {type(value).__name__} can't be written: add | list, or () to call it")
