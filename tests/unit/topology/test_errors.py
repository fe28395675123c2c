"""What, where, how to fix."""

import pytest
from delayctl.topology import errors
from delayctl.topology.errors import DelayctlError, InvalidTopology, Location, Problem, Refused

LATE = Problem("late", Location("topology.yaml", 9), "mend it")
EARLY = Problem("early", Location("topology.yaml", 2), "mend it too")


def test_an_error_says_what_where_and_how_to_fix() -> None:
    """One line each."""
    error = DelayctlError("the file is there already", where="topology.yaml", fix="overwrite it with --force")

    assert str(error) == ("Error: the file is there already\n  at topology.yaml\n  fix: overwrite it with --force")


def test_what_is_not_known_is_not_said() -> None:
    """No empty lines."""
    assert str(DelayctlError("it broke")) == "Error: it broke"


def test_the_parts_can_be_told_apart() -> None:
    """A program need not take the text to pieces."""
    error = DelayctlError("what", where="where", fix="fix")

    assert (error.what, error.where, error.fix) == ("what", "where", "fix")


@pytest.mark.parametrize(("location", "text"), [(Location("a.yaml", 3), "a.yaml:3"), (Location("a.yaml"), "a.yaml")])
def test_a_place_is_shown_as_editors_know_it(location: Location, text: str) -> None:
    """File and line."""
    assert str(location) == text


def test_problems_are_shown_in_the_order_of_the_file() -> None:
    """All of them, not the first."""
    error = InvalidTopology([LATE, EARLY])

    assert error.problems == (EARLY, LATE)
    assert str(error) == (
        "Error: early\n  at topology.yaml:2\n  fix: mend it too\nError: late\n  at topology.yaml:9\n  fix: mend it"
    )


@pytest.mark.parametrize(("problems", "what"), [([LATE], "1 problem found"), ([LATE, EARLY], "2 problems found")])
def test_problems_are_counted(problems: list[Problem], what: str) -> None:
    """In words that fit the number."""
    assert InvalidTopology(problems).what == what


def test_a_refusal_keeps_the_code_of_the_broker() -> None:
    """Callers tell a lock from a conflict by it."""
    assert Refused("no", code=405).code == 405


@pytest.mark.parametrize("name", [name for name in vars(errors) if isinstance(vars(errors)[name], type)])
def test_every_error_has_the_one_base(name: str) -> None:
    """So that one clause catches all that a user may meet."""
    found = vars(errors)[name]

    assert not issubclass(found, Exception) or issubclass(found, DelayctlError)


def test_an_error_shows_its_parts_when_it_is_logged() -> None:
    """Its repr is made of them."""
    assert repr(DelayctlError("what", fix="fix", where="where")) == "DelayctlError('what', 'fix', 'where')"
