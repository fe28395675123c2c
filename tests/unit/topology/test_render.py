"""Templates: what they give, which line wrote it, and what they may not do."""

import pytest
from delayctl.topology.errors import InvalidTopology, Location, Problem
from delayctl.topology.render import Rendered, names_used, render


def lines_of(text: str, **values: object) -> list[tuple[int, str]]:
    """Each rendered line with the line of the file that wrote it."""
    rendered = render(text, values, file="f")
    return list(zip(rendered.lines, rendered.text.split("\n"), strict=True))


def problems_of(text: str, **values: object) -> tuple[Problem, ...]:
    """What is wrong with a template."""
    with pytest.raises(InvalidTopology) as caught:
        render(text, values, file="f")
    return caught.value.problems


def test_a_file_without_templates_is_left_alone() -> None:
    """Not even line endings are touched."""
    assert render("a: {b: c}\r\nd: e", {}, file="f") == Rendered("f", "a: {b: c}\r\nd: e", (1, 2))


def test_a_loop_writes_its_lines_again() -> None:
    """Every turn belongs to the lines of the loop's body."""
    text = "a\n{%- for i in [1, 2] %}\n- {{ i }}\n  b\n{%- endfor %}\nc"

    assert lines_of(text) == [(1, "a"), (3, "- 1"), (4, "  b"), (3, "- 2"), (4, "  b"), (6, "c")]


def test_trimmed_blocks_keep_their_lines() -> None:
    """A line belongs to whoever wrote its first visible character, wherever its indentation came from."""
    text = "a\n{% for i in [1, 2] -%}\n  - {{ i }}\n  {% endfor %}\nb"

    assert lines_of(text) == [(1, "a"), (3, "- 1"), (3, "  - 2"), (4, "  "), (5, "b")]


def test_a_value_of_several_lines_stays_at_its_line() -> None:
    """What a value breaks into belongs to the line that wrote the value, and counting goes on after it."""
    assert lines_of("a\n{{ b }}\nc", b="1\n2\n3") == [(1, "a"), (2, "1"), (2, "2"), (2, "3"), (3, "c")]


def test_a_macro_belongs_to_the_line_that_calls_it() -> None:
    """Its text can be trimmed and measured like any other."""
    text = "{% macro m(x) %}\n  {{ x }}\n  b\n{% endmacro %}{{ m(1) | trim }}\n{{ m(2) | length }}"

    assert lines_of(text) == [(4, "1"), (4, "  b"), (5, "9")]


def test_raw_text_and_comments_keep_their_lines() -> None:
    """Neither braces nor remarks of several lines confuse the count."""
    text = "{# one\ntwo #}\n{% raw %}\n{{ a }}{% endraw %}\nb"

    assert lines_of(text) == [(2, ""), (3, ""), (4, "{{ a }}"), (5, "b")]


def test_line_breaks_of_yaml_alone_do_not_count() -> None:
    """U+2028 ends a line to YAML; to the editor that shows line numbers it does not."""
    assert render("a\u2028b\n{{ 1 }}\u2028\nc", {}, file="f").lines == (1, 1, 2, 2, 3)
    assert render("a\u2028b\r\nc", {}, file="f").lines == (1, 1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, "null"),
        (5, "5"),
        ("a b", "a b"),
        (["1m", None, False], '["1m", null, false]'),
        ({"a": ["it's", "\\"]}, '{"a": ["it\'s", "\\\\"]}'),
        (range(3), "[0, 1, 2]"),
    ],
)
def test_values_are_written_as_yaml_spells_them(value: object, text: str) -> None:
    """No `True`, no `None`, no quotes of Python's own."""
    assert render("{{ value }}", {"value": value}, file="f").text == text


def test_joined_values_are_spelled_the_same() -> None:
    """The operator ~ and the braces agree."""
    assert render("{{ 'a' ~ true ~ 5 ~ none }}", {}, file="f").text == "atrue5null"


def test_every_undefined_name_is_reported() -> None:
    """All of them at once, each at its line, but none that has a default or is asked for first."""
    text = "{{ a }}\n{{ b | default(1) }}{% if c is defined %}{{ c }}{% endif %}\n{{ regoin }}{{ a }}"
    fix = "give it with --set NAME=VALUE or --values FILE, or write {{ name | default(…) }}"

    assert problems_of(text, region="eu") == (
        Problem("template: 'a' is undefined", Location("f", 1), fix),
        Problem("template: 'regoin' is undefined (did you mean 'region'?)", Location("f", 3), fix),
        Problem("template: 'a' is undefined", Location("f", 3), fix),
    )


def test_an_undefined_value_in_a_filter_is_reported_by_its_name() -> None:
    """Whichever filter it meets."""
    assert [problem.message for problem in problems_of("{{ region | tojson }}")] == ["template: 'region' is undefined"]


def test_an_error_names_the_line_of_the_template() -> None:
    """Also within a loop, where Python's own line would be another."""
    text = "a\n{% for i in [1, 0] %}\n  b\n  {{ 1 // i }}\n{% endfor %}"

    assert problems_of(text) == (
        Problem("template: integer division or modulo by zero", Location("f", 4), "correct the expression"),
    )


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("\n{% fro a in b %}", "template: unknown tag 'fro' (did you mean 'for'?)", "write for"),
        ("\n{{ a | uper }}", "template: no filter named 'uper' (did you mean 'upper'?)", "write upper"),
        ("\n{{ a is strng }}", "template: no test named 'strng' (did you mean 'string'?)", "write string"),
        ("\n{% for a in b %}", "template: the block 'for' is not closed", "close it with {% endfor %}"),
        (
            "\n{% include 'a' %}",
            "template: a topology is one file: no include, import or extends",
            "write it out here, or as a macro",
        ),
    ],
)
def test_a_syntax_error_comes_with_a_fix(text: str, message: str, fix: str) -> None:
    """What is misspelt or missing is named."""
    assert problems_of(text) == (Problem(message, Location("f", 2), fix),)


def test_values_can_not_be_changed() -> None:
    """A template reads what it is given, and leaves it as it is."""
    values = [1]

    problems = problems_of("{{ values.append(2) }}", values=values)

    assert [problem.message for problem in problems] == [
        "template: access to attribute 'append' of 'list' object is unsafe"
    ]
    assert values == [1]


@pytest.mark.parametrize(
    "expression",
    [
        "'x' * 10 ** 7",
        "[1] * 10 ** 7",
        "9 ** (9 ** 9)",
        "10 ** 1000 * 10 ** 1000",
        "'x' | indent(10 ** 6)",
        "'x'.zfill(10 ** 6)",
        "'%9999999d' % 1",
        "'%*d' % (9999999, 1)",
        "[1] | batch(10 ** 7, 0) | list",
        "range(10 ** 6)",
        "range(90000) | map('string') | map('replace', '', 'x' * 900) | join",
        "['x' * 90000] * 90000",
    ],
)
def test_an_expression_that_would_fill_the_memory_is_refused(expression: str) -> None:
    """Before it does."""
    (problem,) = problems_of(f"{{{{ {expression} }}}}")

    assert problem.fix == "make it smaller: no topology needs that much"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("'%02d' | format(7)", "07"),
        ("['a', 'b'] | join(', ')", "a, b"),
        ("['b', 'a'] | sort | map('upper') | list", '["A", "B"]'),
        ("[1, 2, 3] | sum", "6"),
        ("[{'n': 1}, {'n': 2}] | map(attribute='n') | sum", "3"),
        ("'a.b'.split('.') | last", "b"),
        ("'a.b'.replace('.', '-')", "a-b"),
        ("{'a': 1}.items() | list", '[["a", 1]]'),
        ("max_length | default(5000000)", "5000000"),
        ("2 ** 20 * 3 + 1", "3145729"),
        ("'x' * 3", "xxx"),
        ("'%s-%s' % ('a', 5)", "a-5"),
        ("none is none and 5 is odd", "true"),
    ],
)
def test_ordinary_expressions_work(expression: str, text: str) -> None:
    """The bounds are far away from what a topology needs."""
    assert render(f"{{{{ {expression} }}}}", {}, file="f").text == text


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("version: 1", set()),
        ("{{ a }}{% if b %}{{ c.d | default(e) }}{% endif %}", {"a", "b", "c", "e"}),
        ("{% set a = a | default(1) %}{{ a }}", {"a"}),
        ("{% for a in range(b) %}{{ a }}{% endfor %}", {"range", "b"}),
        ("{% macro m(a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", {"b"}),
        ("{{ a", None),
        ("{{ a | nothing }}", None),
    ],
)
def test_names_that_a_template_takes_from_outside(text: str, names: set[str] | None) -> None:
    """Wherever they stand, and whether or not they are come by."""
    assert names_used(text) == names
