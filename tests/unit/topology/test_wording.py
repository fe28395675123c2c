"""Turns of phrase that messages share."""

import subprocess
import time

import pytest
from delayctl.topology.wording import (
    STDIN,
    Spelling,
    argument,
    as_text,
    command,
    did_you_mean,
    escaped,
    escaped_within,
    near,
    plural,
    quoted,
    shorten,
    visible,
)


def test_a_short_text_is_repeated_as_it_is() -> None:
    """Nothing is done to what can be read."""
    assert shorten("orders.größe 注文") == "orders.größe 注文"


def test_a_long_text_is_cut() -> None:
    """Forty characters say enough, the last of them that there is more."""
    assert shorten("x" * 41) == "x" * 39 + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\t", "a\\nb\\t"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("r\udcff", "r\\xff"),
    ],
)
def test_what_moves_a_cursor_is_escaped(text: str, shown: str) -> None:
    """No value in a file can colour, clear or reorder what the terminal shows."""
    assert shorten(text) == shown


def test_bytes_that_are_no_text_are_shown_as_they_came() -> None:
    """One function for all that shows keys, ids and headers, which anybody writes."""
    assert escaped(as_text(b"r\xff.gr\xc3\xbc\xc3")) == "r\\xff.grü\\xc3"
    assert escaped("half a character: \ud800") == "half a character: \\ud800"


def test_json_gets_nothing_that_a_reader_would_refuse() -> None:
    """Names and values alike, however deep they lie."""
    value = {"r\udcff": [("\udc80", b"\xfe"), {"n": 0.5}, 1, None, "grün"]}

    assert escaped_within(value) == {"r\\xff": [["\\x80", "\\xfe"], {"n": 0.5}, 1, None, "grün"]}


def test_quoted_text_is_cut_and_escaped_as_well() -> None:
    """Quotes go around what shorten gives."""
    assert quoted("a\0") == "'a\\x00'"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "message", "0 messages"),
        (1, "message", "1 message"),
        (1_234, "message", "1,234 messages"),
        (2, "policy", "2 policies"),
        (1, "policy", "1 policy"),
        (2, "key", "2 keys"),
    ],
)
def test_a_count_agrees_with_its_noun(count: int, noun: str, text: str) -> None:
    """One message, two messages, two policies."""
    assert plural(count, noun) == text


@pytest.mark.parametrize(("name", "known"), [("max_lenght", "max_length"), ("fro", "for"), ("exchange", "exchanges")])
def test_the_near_name_is_found(name: str, known: str) -> None:
    """A slip of the finger leads back to the word that was meant, short words included."""
    assert near(name, ["other", known, "queue"]) == known


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    """A wrong suggestion is worse than none."""
    assert did_you_mean("durable", ["type", "alternate", "existing"]) == ""


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("order.exchange", "orders.exchange"),
        ("orders.exchnage", "orders.exchange"),
        ("orders.exchangee", "orders.exchange"),
        ("orders.timeuot.queue", "orders.timeout.queue"),
        ("orders.timeoux.queue", "orders.timeout.queue"),
    ],
)
def test_one_slip_in_one_word_is_a_misspelling(name: str, known: str) -> None:
    """A letter too many, too few, another, or two swapped."""
    assert Spelling([known, "stores.exchange"]).meant_by(name) == known


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("orders.2.queue", "orders.1.queue"),
        ("orders.1001.queue", "orders.1000.queue"),
        ("orders.v2.queue", "orders.v1.queue"),
        ("orders.us.queue", "orders.eu.queue"),
        ("orders.queue", "stores.queue"),
        ("order.queu", "orders.queue"),
        ("orders.timeout.queue", "orders.queue"),
        ("refunded", "funded"),
    ],
)
def test_a_neighbour_is_no_misspelling(name: str, known: str) -> None:
    """Other numbers, other short words, two words that differ: other names."""
    assert Spelling([known]).meant_by(name) is None


def test_the_answer_does_not_depend_on_the_order_of_names() -> None:
    """Of several, the first by name."""
    assert (
        Spelling(["orderz", "orders"]).meant_by("orderx")
        == Spelling(["orders", "orderz"]).meant_by("orderx")
        == "orders"
    )


def test_thousands_of_names_are_looked_up_in_no_time() -> None:
    """The cost grows with the names, not with their square."""
    spelling = Spelling([f"team{i}.timeout.queue" for i in range(2_000)])

    started = time.process_time()
    answers = [spelling.meant_by(f"group{i}.timeout.queue") for i in range(2_000)]

    assert answers == [None] * 2_000
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("file", "typed"), [("topology.yaml", "topology.yaml"), ("my delays.yaml", "'my delays.yaml'"), (STDIN, "-")]
)
def test_a_file_behind_a_command_can_be_typed(file: str, typed: str) -> None:
    """A hint is copied into a shell as it is."""
    assert argument(file) == typed


NASTY = ["\x1b[2J;rm -rf", "it's \\ \n here", "a\u202eb", "r\udcff", "$(reboot)", "a b", ""]


@pytest.mark.parametrize("name", NASTY)
def test_a_command_reaches_what_it_names(name: str) -> None:
    """Whatever a name consists of, a shell makes that very name of it, and a terminal shows nothing else."""
    typed = command("printf", "%s", name)

    printed = subprocess.run(["bash", "-c", typed], capture_output=True, check=True).stdout

    assert typed.isprintable()
    assert as_text(printed) == name


def test_a_text_is_shown_whole() -> None:
    """However long it is, without what would move a cursor."""
    assert visible("x" * 50 + "\x1b[2J") == "x" * 50 + "\\x1b[2J"
