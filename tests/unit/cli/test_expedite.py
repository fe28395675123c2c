"""What expedite looks for, and whether all of it was there."""

import time

import pytest
from delayctl.cli.expedite import _missing, _Search
from delayctl.consumers.homes import Onward
from delayctl.consumers.sighting import Wanted
from delayctl.publishers.frames import Properties, encode_properties

from tests.support.commands import Ran, delayctl
from tests.unit.consumers.test_sighting import DELAYS, delivery


@pytest.mark.parametrize(
    ("wanted", "is_found", "told"),
    [
        (Wanted(keys=("a.*",)), True, ""),
        (Wanted(keys=("a.*", "b.#")), False, "Not found: key 'b.#'."),
        (Wanted(ids=frozenset({"other"})), False, "Not found: 'other'."),
    ],
    ids=["key", "another key", "id"],
)
def test_what_is_named_and_not_there_is_told(wanted: Wanted, is_found: bool, told: str) -> None:
    """A key as well as an id."""
    search = _Search("delay.exchange", wanted, DELAYS)

    search.decide(delivery())

    assert search.is_found == is_found
    assert "".join(_missing(search)).startswith(told)


def test_what_is_expedited_says_so() -> None:
    """When that was, beside the due time that was meant: it comes early on purpose."""
    began_ms = time.time_ns() // 1_000_000

    decision = _Search("delay.exchange", Wanted(), DELAYS).decide(delivery(**{"delay-due": 7, "shop": "eu"}))

    assert isinstance(decision, Onward)
    headers = dict(decision.properties.headers or {})
    assert 0 <= headers.pop("delay-expedited") - began_ms < 60_000
    assert headers == {"delay-due": 7, "shop": "eu"}


def test_an_id_is_found_as_it_is_shown() -> None:
    """Bytes that are no text are shown escaped."""
    search = _Search("delay.exchange", Wanted(ids=frozenset({"m-\\xff"})), DELAYS)
    came = delivery()
    came.header = b"\0" * 12 + encode_properties(Properties(message_id="m-\udcff"))

    search.decide(came)

    assert search.is_over()


@pytest.mark.parametrize(
    ("options", "what"),
    [((), "which messages are meant?"), (("--all", "--id", "x"), "--all excludes --id and --key")],
    ids=["none", "both"],
)
def test_what_is_meant_has_to_be_said(options: tuple[str, ...], what: str) -> None:
    """Before anything is read."""
    ran = delayctl("expedite", "missing.yaml", "--level", "15m", *options)

    assert ran == Ran(64, "", f"Error: {what}\n  fix: say which: --all, or --id ID or --key PATTERN\n")
