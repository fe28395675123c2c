"""YAML to nodes: what scalars mean, where they stand, and what is too much."""

import pytest
import yaml
from delayctl.topology import source
from delayctl.topology.errors import DelayctlError, InvalidTopology, Location, Problem
from delayctl.topology.render import Rendered
from delayctl.topology.source import ListNode, MapNode, Node, ScalarNode, load, plain


@pytest.fixture(params=["compiled", "pure"], autouse=True)
def _both_loaders(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML may come with libyaml or without."""
    if request.param == "pure":
        monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)


def read(text: str) -> Node:
    """The root of a text."""
    return load(Rendered.untouched("f", text))


def problem_of(text: str) -> Problem:
    """The one problem of a text."""
    with pytest.raises(InvalidTopology) as caught:
        read(text)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", "a"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("NULL", None),
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("007", 7),
        ("1_000_000", 1_000_000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1_000.0),
        ("123456789012345678901", float("inf")),
        ("yes", "yes"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("0x1F", "0x1F"),
        ("1_", "1_"),
        ("1__0", "1__0"),
        ("_1", "_1"),
        ("1_0.5", "1_0.5"),
        ("5m", "5m"),
        (".", "."),
        ("-", "-"),
        ("2026-01-01", "2026-01-01"),
        ('"5"', "5"),
        ("'true'", "true"),
        ("|-\n 5", "5"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(text: str, value: object) -> None:
    """Plain words are text but for a few, and quotes make anything text."""
    node = read(f"a: {text}" if text != "-" else "a: '-'")

    assert isinstance(node, MapNode)
    scalar = node.pairs[0][1]
    assert isinstance(scalar, ScalarNode)
    assert (scalar.value, type(scalar.value)) == (value, type(value))


def test_every_node_knows_its_line() -> None:
    """Counted from one, as editors do."""
    root = read("a: 1\nb:\n  - c\n  - {d: e}\n")

    assert isinstance(root, MapNode)
    (a, one), (b, items) = root.pairs
    assert isinstance(items, ListNode)
    assert [node.line for node in (root, a, one, b, items, *items.items)] == [1, 1, 1, 2, 3, 3, 4]


def test_merge_keys_are_worked_in() -> None:
    """A mapping's own keys win, then the first that is merged."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\nd: {<<: *b, <<: *a}\n"

    assert plain(read(text)) == {
        "a": {"x": 1, "y": 1},
        "b": {"y": 2, "z": 2},
        "c": {"x": 3, "y": 1, "z": 2},
        "d": {"y": 2, "z": 2, "x": 1},
    }


def test_a_merge_key_in_quotes_is_a_name() -> None:
    """A queue may be called that."""
    assert plain(read('"<<": {a: 1}\nb: <<')) == {"<<": {"a": 1}, "b": "<<"}


def test_an_anchor_can_be_set_again() -> None:
    """An alias stands for the last one before it."""
    assert plain(read("a: &x 1\nb: *x\nc: &x [2]\nd: *x\n")) == {"a": 1, "b": 1, "c": [2], "d": [2]}


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.10", "1.10"), ("1.5", 1.5), ("007", "007"), ("1_000", 1_000), ("5", 5), ("1" * 30, "1" * 30), ("true", True)],
)
def test_a_template_value_is_printed_as_it_was_written(text: str, value: object) -> None:
    """`--set version=1.10` must not become 1.1."""
    assert plain(read(text)) == value


def test_values_nested_by_aliases_have_a_bottom() -> None:
    """Aliases of aliases can make a value deeper than any text."""
    text = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 60))

    with pytest.raises(DelayctlError, match="nested deeper than 40 levels"):
        plain(read(text))


def test_an_empty_text_is_nothing() -> None:
    """So is one of comments only."""
    assert [plain(read(text)) for text in ("", "# a\n", "---\n")] == [None, None, None]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a: 'b\nc: d\n", 1, "not YAML: the quote that opens here is not closed"),
        ("a: [b,\nc: d\n\n", 1, "not YAML: the '[' that opens here is not closed, or a comma is missing before line 4"),
        ("a:\n\tb: c\n", 2, "not YAML: a tab stands where only spaces may"),
        ("a: b: c\n", 1, "not YAML: a ':' stands where no value can follow"),
        ("a: 1\nb\nc: 2\n", 2, "not YAML: 'b' has no ':'"),
        ("a: 1\n b: 2\n", 2, "not YAML: a ':' stands where no value can follow"),
        ("a:1\nb: 2\n", 1, "not YAML: a space is missing behind the ':' of 'a:1'"),
        ("a: 1\nb:2\nc: 3\n", 2, "not YAML: a space is missing behind the ':' of 'b:2'"),
        ("a:\n  b:\n  -1\n  -2\n", 3, "not YAML: a space is missing behind the '-' of '-1'"),
        ("a:\n  -{b: 1, c: 2}\n", 2, "not YAML: a space is missing behind the '-' of '-{b: 1, c: 2}'"),
        ("- a\nb: 2\n", 2, "not YAML: the line does not fit into the list that begins at line 1"),
        ("a: @b\n", 1, "not YAML: a value can't begin with '@'"),
        ("a: *\n", 1, "not YAML: a text that begins with * needs quotes"),
        ("a: 1\n---\nb: 2\n", 2, "a second document begins"),
        ("a: *b\n", 1, "the alias *b names no anchor before it"),
        ("a: &b [*b]\n", 1, "the alias *b stands within its own anchor"),
        ("a: !!python/name:os.system x\n", 1, "the tag !!python/name:os.system is not allowed"),
        ("a: {<<: b}\n", 1, "'<<' needs a mapping to merge"),
        ("a: 1\nb: \x00\n", 2, "not YAML: character U+0000 is not allowed"),
        ("é: 1\nb: \ud800\n", 2, "not YAML: character U+D800 is not allowed"),
        ("[" * 50, 1, "nested deeper than 40 levels"),
    ],
)
def test_broken_yaml_is_explained_at_the_line_to_mend(text: str, line: int, message: str) -> None:
    """Which is not always the line where it was noticed."""
    problem = problem_of(text)

    assert (problem.message, problem.location) == (message, Location("f", line))


def test_aliases_run_out() -> None:
    """A few lines can stand for billions of values; no topology needs them."""
    text = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))

    assert problem_of(text).message == "the aliases up to *a4 stand for more than 200,000 values"
