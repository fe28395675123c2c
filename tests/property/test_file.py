"""What holds for every file: it is read back as it was written, and whatever is wrong with it is explained."""

from delayctl.topology.arguments import queue_arguments, split_arguments
from delayctl.topology.duration import Duration
from delayctl.topology.errors import InvalidTopology, Problem
from delayctl.topology.expand import expand
from delayctl.topology.layout import scalar
from delayctl.topology.lines import LINE_BREAK
from delayctl.topology.model import Queue, freeze_arguments
from delayctl.topology.parse import read_spec
from delayctl.topology.rate import Rate
from delayctl.topology.render import Rendered, render
from delayctl.topology.size import parse_size, size_text
from delayctl.topology.source import load, plain
from delayctl.topology.spec import Spec
from delayctl.topology.write import write_spec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.corpus.files import VALID, valid_names, values_for
from tests.support.strategies import AWKWARD, durations, rates, sizes, specs

FILES = {name: (VALID / f"{name}.yaml").read_text(encoding="utf-8-sig") for name in valid_names()}
VALUES = {name: values_for(VALID, name) for name in FILES}
SNIPPETS = (
    *AWKWARD,
    *("\n", "\n  ", "\t", "  ", ": ", "- ", ",", "{", "}", "[", "]", "|\n", "? ", "<<: *wait", "*two", "&two"),
    *(
        "{{ name }}",
        "{{ ",
        " }}",
        "{% for i in range(3) %}",
        "{% endfor %}",
        "{% if x %}",
        "{{ 1/0 }}",
        "{{ 'a' * 10**9 }}",
    ),
    *(
        "levels: ",
        "key: ",
        "to: ",
        "from: ",
        "park: ",
        "max: ",
        "version: 2\n",
        "0",
        "-1",
        "99999999999999999999",
        "5m",
        "0s",
        "delay: none\n",
        "headers: ",
        "x-match: any",
        "expected_rate: ",
        "5/s",
        "permissions: {a: consumer}\n",
        "role: ",
        "lint: {memory: 4GiB}\n",
    ),
    *("\r", "\r\n", "\x00", "\x07", "\ud800", "\U0001f600", "é"),
)


@settings(max_examples=150)
@given(specs())
def test_a_written_file_is_read_back_as_it_was(spec: Spec) -> None:
    """Nothing is lost between a Spec and its file, whatever the names look like."""
    # Compared as text, since True == 1 in Python and not to the broker.
    assert repr(read_spec(write_spec(spec), {}, file="topology.yaml")) == repr(spec)


@settings(max_examples=50)
@given(specs())
def test_writing_and_expanding_are_repeatable(spec: Spec) -> None:
    """The same Spec gives the same file and the same topology."""
    assert (write_spec(spec), expand(spec)) == (write_spec(spec), expand(spec))


@given(durations)
def test_a_duration_is_read_back_as_it_was_written(duration: Duration) -> None:
    """What is shown can be typed in again."""
    assert Duration.parse(str(duration)) == duration


@given(rates)
def test_a_rate_is_read_back_as_it_was_written(rate: Rate) -> None:
    """To the last digit."""
    assert Rate.parse(str(rate)) == rate


@given(sizes)
def test_a_size_is_read_back_as_it_was_written(size: int) -> None:
    """In whatever unit it is shown."""
    assert parse_size(size_text(size)) == size


@given(
    st.dictionaries(
        st.sampled_from(["x-queue-type", "x-message-ttl", "x-max-length", "x-overflow", "x-expires"])
        | st.text(max_size=9),
        st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=2),
        max_size=5,
    )
)
def test_queue_arguments_survive_settings(arguments: dict[str, object]) -> None:
    """Known or unknown, of the right type or not, every argument comes out as it went in."""
    known, extra = split_arguments(arguments)

    assert repr(freeze_arguments(queue_arguments(Queue("q", known, extra=extra)))) == repr(freeze_arguments(arguments))


@settings(max_examples=200)
@given(st.text() | st.sampled_from(AWKWARD))
def test_a_scalar_is_read_back_as_the_same_text(text: str) -> None:
    """No text is taken for a number, a mapping, a comment or a template."""
    rendered = render(f"a: {scalar(text)}\nb: [{scalar(text)}]\n{scalar(text[:100])}: c\n", {}, file="f")

    assert plain(load(rendered)) == {"a": text, "b": [text], text[:100]: "c"}


@settings(max_examples=300)
@given(st.text() | st.lists(st.sampled_from(SNIPPETS)).map("".join))
@example("{{ '\\ud800' }}")
@example("1__0: 1_")
def test_any_text_is_read_or_explained(text: str) -> None:
    """No text makes the parser fail in any other way than by saying what is wrong."""
    _read_or_explain(text, {})


@settings(max_examples=400)
@given(st.data())
def test_any_damage_is_read_or_explained(data: st.DataObject) -> None:
    """Nor does a good file with something cut out or pasted in."""
    name = data.draw(st.sampled_from(sorted(FILES)))
    text = FILES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 30, len(text))))
        text = text[:start] + data.draw(st.just("") | st.sampled_from(SNIPPETS) | st.text(max_size=3)) + text[end:]

    _read_or_explain(text, VALUES[name])


def _read_or_explain(text: str, values: dict[str, object]) -> None:
    read = _read(text, values)
    if isinstance(read, Spec):
        assert read_spec(write_spec(read), {}, file="written.yaml") == read
        assert [level.name for level in expand(read).levels] == [level.name for level in read.levels]
    else:
        last = len(LINE_BREAK.split(text))
        assert read
        assert all(problem.location.line is None or 1 <= problem.location.line <= last for problem in read)
        assert all(problem.message.isprintable() and problem.fix.isprintable() for problem in read)


def _read(text: str, values: dict[str, object]) -> Spec | tuple[Problem, ...]:
    try:
        return read_spec(text, values, file="topology.yaml")
    except InvalidTopology as error:
        return error.problems


@given(st.text())
def test_text_without_templates_is_left_as_it_is(text: str) -> None:
    """Only braces make a file a template."""
    plain_text = text.replace("{", "")

    assert render(plain_text, {}, file="f") == Rendered.untouched("f", plain_text)
