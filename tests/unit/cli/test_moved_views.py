"""What redrive, expedite and pending answer, compared whole; and what their options mean."""

from collections import Counter
from fractions import Fraction

import pytest
from delayctl.cli.moved_views import NOT_MEANT, Errand, code_of, moved_json, moved_text
from delayctl.cli.moving import rate_from
from delayctl.cli.pending_views import Found, Place, due_counts, pending_json, pending_text
from delayctl.cli.views import to_json_text
from delayctl.cli.wanted import wanted_from
from delayctl.consumers.homes import Stays
from delayctl.consumers.moved import Moved
from delayctl.consumers.sighting import Sighting, Wanted
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption

from tests.support.golden import check_golden

REDRIVE = Errand("orders.dlq", "Redriven", "Would redrive", is_dry=False, ready=5_000)
NO_ROUTE = Stays("no route for key 'lost' at delay.exchange", "add the route to the file and apply it")
FULL = Stays(
    "the broker refused the message for exchange '': a queue is full or can't keep it", "publish it again later"
)
NOW_MS = 1_700_000_000_000


def moved(**counts: int) -> Moved:
    """An account of what went where, and what stays."""
    return Moved(
        Counter({"orders.queue": counts.get("sent", 0)}) if "sent" in counts else Counter(),
        Counter({NOT_MEANT: counts.get("others", 0), NO_ROUTE: counts.get("lost", 0)}) - Counter(),
        Counter({FULL: counts.get("full", 0)}) - Counter(),
        without_id=counts.get("nameless", 0),
        withheld=counts.get("withheld", 0),
    )


def test_redriven_with_all_that_can_happen() -> None:
    """As text."""
    found = moved(sent=4_200, others=500, lost=100, full=50, nameless=7)

    check_golden("redrive.txt", moved_text(found, REDRIVE, 2.5) + "\n")


def test_dry_run_on_a_broker_that_moves_what_was_looked_at() -> None:
    """As text."""
    errand = Errand("orders.dlq", "Redriven", "Would redrive", is_dry=True, ready=100, keeps_places=False)
    found = moved(sent=60, others=20)
    found.is_worn = True

    check_golden("redrive_dry_run.txt", moved_text(found, errand, 0.1) + "\n")


def test_stopped_and_limited() -> None:
    """What was not looked at is told, and why."""
    stopped, limited, scanned = moved(sent=20), moved(sent=10), moved(sent=1, others=99)
    stopped.is_stopped = True

    texts = [
        moved_text(stopped, REDRIVE, 0.5),
        moved_text(limited, Errand("q", "Redriven", "Would redrive", is_dry=False, ready=30, limit=10), 0.5),
        moved_text(scanned, Errand("q", "Expedited", "Would expedite", is_dry=False, ready=300, scan=100), 0.5),
        moved_text(moved(sent=29), Errand("q", "Redriven", "Would redrive", is_dry=False, ready=30), 0.5),
    ]

    assert [text.splitlines()[-1] for text in texts] == [
        "Stopped: 4,980 messages not looked at. Run it again to go on.",
        "Not looked at: 20, by the limit of 10.",
        "Not looked at: 200, behind the first 100; --scan looks further.",
        "Gone meanwhile: 1; somebody else took them, or they expired.",
    ]


def test_what_others_have_is_not_gone() -> None:
    """Of ten messages five were moved, three are kept from us, and two have gone."""
    errand = Errand("q", "Redriven", "Would redrive", is_dry=False, ready=10)

    assert moved_text(moved(sent=5, withheld=3), errand, 0.5).splitlines()[2:] == [
        "Gone meanwhile: 2; somebody else took them, or they expired.",
        "Not given to us: 3. They are in q, which gives them to others, or holds them back.",
        "  fix: see who consumes from it (rabbitmqctl list_consumers), end that, and run it again",
    ]


def test_as_programs_read_it() -> None:
    """As JSON."""
    found = moved(sent=4_200, others=500, lost=100, full=50, nameless=7)

    check_golden("redrive.json", to_json_text(moved_json(found, REDRIVE, 2.5)) + "\n")


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (moved(), 0),
        (moved(sent=5), 0),
        (moved(sent=5, others=3), 0),
        (moved(others=3), 0),
        (moved(sent=5, lost=1), 3),
        (moved(lost=1), 1),
        (moved(full=1), 1),
        (moved(sent=5, full=1), 3),
        (moved(withheld=2), 1),
        (moved(sent=5, withheld=2), 3),
    ],
)
def test_exit_codes(found: Moved, code: int) -> None:
    """0 when all that was meant was moved, 3 when some of it was, 1 when none was."""
    assert code_of(found) == code


def waiting(key: str, due_in_s: int | None) -> Sighting:
    """A message that waits."""
    due = None if due_in_s is None else NOW_MS + due_in_s * 1000
    return Sighting(f"m-{key}-{due_in_s}", key, "", 0, due_ms=due)


def parked(key: str, reason: str | None, ago_s: int | None) -> Sighting:
    """A message that was given up."""
    since = None if ago_s is None else NOW_MS - ago_s * 1000
    return Sighting(None if reason is None else f"p-{key}", key, "", 2, reason, since)


PENDING = [
    Found(
        Place("delay.15m.queue", "15m", Duration(900_000)),
        12_345,
        (waiting("order.created", 2), waiting("order.created", 30), waiting("order.paid", 700), waiting("bill", None)),
        held_ms=8,
    ),
    Found(Place("delay.1m.queue", "1m", Duration(60_000)), 0, ()),
    Found(Place("delay.any.03.queue", "any.03", Duration(8_000)), 70, (), keeps_places=False),
    Found(
        Place("orders.dlq", None),
        3,
        (
            parked("order.created", "ConnectionError: the bank is away", 3_700),
            parked("order.created", "ConnectionError: the bank is away", 90),
            parked("strange", None, None),
        ),
        held_ms=3,
        is_worn=True,
    ),
    Found(Place("delay.unrouted.queue", None), 0, ()),
]


def test_pending() -> None:
    """As text, with and without the single messages, and as JSON."""
    check_golden("pending.txt", pending_text(PENDING, NOW_MS, is_listed=False) + "\n")
    check_golden("pending_list.txt", pending_text(PENDING, NOW_MS, is_listed=True) + "\n")
    check_golden("pending.json", to_json_text(pending_json(PENDING, NOW_MS)) + "\n")


def test_what_expired_and_found_no_taker_is_told() -> None:
    """Nobody is given such messages, so that a count of what is ready says that there is nothing."""
    place = Place("delay.safe.queue", "safe", Duration(60_000))

    told = pending_text([Found(place, 0, (), dead_lettering=35)], NOW_MS, is_listed=False)

    assert told == (
        "level safe: nothing is ready\n"
        "       35  expired and found no taker yet: delayctl doctor says why\n"
        "In all: 0 messages waiting, 0 parked, 35 expired without a taker."
    )


def test_kinds_that_are_left_out_are_counted() -> None:
    """So that the numbers add up: parked for twenty-five reasons, one of them twice; and as many keys that wait."""
    reasons = ["why 0", *(f"why {number}" for number in range(25))]
    dead = Found(Place("orders.dlq", None), 26, tuple(parked("k", reason, 90) for reason in reasons))
    due = Found(Place("delay.1m.queue", "1m"), 25, tuple(waiting(f"key {number}", 2) for number in range(25)))

    told = pending_text([due, dead], NOW_MS, is_listed=False).splitlines()

    assert [line for line in told if " other " in line] == ["        5  of 5 other keys", "        5  of 5 other kinds"]


def test_each_message_is_due_once() -> None:
    """In the order of time."""
    seen = [waiting("k", seconds) for seconds in (-5, 0, 10, 11, 3_600, 90_000, 10**6)] + [waiting("k", None)]

    assert due_counts(seen, NOW_MS) == [
        ("overdue", 1),
        ("within 10s", 2),
        ("within 1m", 1),
        ("within 1h", 1),
        ("within 7d", 1),
        ("in more than 7d", 1),
        ("not said", 1),
    ]


def test_conditions() -> None:
    """The same field again adds a value, another narrows it down."""
    where = ("key=order.*", "key=mail.#", "reason=bank=closed", "id=a", "header.shop=eu")

    assert wanted_from(where, "1h", "1d") == Wanted(
        keys=("order.*", "mail.#"),
        ids=frozenset({"a"}),
        reasons=("bank=closed",),
        headers=(("shop", "eu"),),
        older_than_ms=3_600_000,
        newer_than_ms=86_400_000,
    )


@pytest.mark.parametrize(
    ("where", "older", "expected"),
    [
        (("key",), None, "--where 'key' is not FIELD=VALUE"),
        (("key=",), None, "--where 'key=' is not FIELD=VALUE"),
        (("keys=x",), None, "--where knows no 'keys' (did you mean 'key'?)"),
        ((), "soon", "--older-than: 'soon' is not a duration"),
    ],
)
def test_conditions_that_are_none(where: tuple[str, ...], older: str | None, expected: str) -> None:
    """Each says what is wrong."""
    with pytest.raises(BadOption) as caught:
        wanted_from(where, older, None)

    assert caught.value.what == expected


def test_rates() -> None:
    """As elsewhere."""
    rate = rate_from("90/m")
    assert rate is not None
    assert rate.per_second == Fraction(3, 2)
    assert rate_from(None) is None
    with pytest.raises(BadOption):
        rate_from("fast")
