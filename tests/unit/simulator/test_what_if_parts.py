"""The parts of a what-if: arrivals on a grid, spreads and series, steps, consumers, entries and findings."""

import pytest
from delayctl.simulator.flow import Limit, limits_of
from delayctl.simulator.flow_counts import MOST_POINTS, Series, Spread
from delayctl.simulator.what_if_answer import Occurrence
from delayctl.simulator.what_if_consumers import Consumers
from delayctl.simulator.what_if_findings import rate_text
from delayctl.simulator.what_if_routes import Entry, delayed_entries, entries_at, entries_with, expected_entries
from delayctl.simulator.what_if_steps import Work
from delayctl.simulator.what_if_traffic import Lump, Span, Stream, Stretch, merged, next_outside, with_bursts
from delayctl.topology.capacity import holds
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import Settings
from delayctl.topology.parse import read_spec
from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message
from delayctl.topology.scene import Scene
from hypothesis import given
from hypothesis import strategies as st


def rate(text: str) -> Rate:
    """A rate."""
    return Rate.parse(text)


def stream(*stretches: Stretch, lumps: tuple[Lump, ...] = ()) -> Stream:
    """Messages from anywhere."""
    return Stream("", Message("key"), stretches, lumps)


def test_even_arrivals_come_one_part_of_the_rate_apart() -> None:
    """Each is rounded up to the step that it comes in."""
    found = stream(Stretch(Span(0, 1_000), rate("7/s")))

    assert list(found.arrivals(1)) == [(143, 1), (286, 1), (429, 1), (572, 1), (715, 1), (858, 1), (1_000, 1)]
    assert list(found.arrivals(300)) == [(300, 2), (600, 2), (900, 2), (1_200, 1)]


def test_a_burst_takes_the_place_of_the_rate() -> None:
    """Of two at a time the later named counts; one after the end is a stretch of its own."""
    bursts = (
        Stretch(Span(10, 30), rate("5/s")),
        Stretch(Span(20, 40), rate("6/s")),
        Stretch(Span(90, 120), rate("7/s")),
    )

    assert with_bursts(rate("1/s"), 80, bursts) == (
        Stretch(Span(0, 10), rate("1/s")),
        Stretch(Span(10, 20), rate("5/s")),
        Stretch(Span(20, 30), rate("6/s")),
        Stretch(Span(30, 40), rate("6/s")),
        Stretch(Span(40, 80), rate("1/s")),
        Stretch(Span(90, 120), rate("7/s")),
    )


@given(
    st.lists(st.tuples(st.integers(1, 5_000), st.integers(1, 10_000)), min_size=1, max_size=6),
    st.sampled_from([1, 7, 100, 1_000]),
)
def test_no_message_is_forgotten_between_stretches(parts: list[tuple[int, int]], step: int) -> None:
    """What is left of one stretch is taken into the next, up to one message; times only grow."""
    stretches, start = [], 0
    for length, per_minute in parts:
        stretches.append(Stretch(Span(start, start + length), rate(f"{per_minute}/m")))
        start += length
    exact = float(sum(s.rate.per_second * (s.span.end - s.span.start) / 1000 for s in stretches))

    found = list(stream(*stretches).arrivals(step))

    assert abs(sum(count for _, count in found) - exact) <= 1
    assert all(count > 0 and time % step == 0 for time, count in found)
    assert [time for time, _ in found] == sorted(time for time, _ in found)


def test_lumps_of_one_step_come_together() -> None:
    """Nothing is lost in rounding."""
    found = stream(lumps=(Lump(0, 1), Lump(5, 2), Lump(10, 3), Lump(11, 4)))

    assert list(found.arrivals(10)) == [(0, 1), (10, 5), (20, 4)]
    assert (found.end, found.count) == (11, 4)


def test_absences_that_touch_are_one() -> None:
    """So that nobody comes back for no time at all."""
    spans = merged([Span(50, 60), Span(10, 20), Span(20, 30), Span(15, 18)])

    assert spans == (Span(10, 30), Span(50, 60))
    assert [next_outside(spans, time) for time in (9, 10, 29, 30)] == [9, 30, 30, 30]


def test_consumers_save_nothing_up() -> None:
    """At 10/s one message takes 100 ms; parts of one are kept as long as there is work."""
    consumers = Consumers(rate("10/s"), (Span(1_000, 2_000),))

    assert consumers.work(0, 250) == 2
    consumers.have_taken(2, is_empty=False)
    assert consumers.work(250, 300) == 1
    consumers.have_taken(0, is_empty=True)
    assert consumers.work(300, 350) == 0
    assert consumers.work(900, 2_100) == 2
    assert (consumers.back_at(1_500), consumers.are_here(1_500), consumers.are_here(2_000)) == (2_000, False, True)


def test_a_spread_knows_its_middle() -> None:
    """By messages, not by values."""
    spread = Spread()
    for value, count in ((5, 1), (-3, 2), (9, 10)):
        spread.add(value, count)

    assert (spread.total, spread.least, spread.median, spread.most) == (13, -3, 9, 9)
    assert (spread.above(0).total, spread.percentile(10), Spread().median) == (11, -3, None)


def test_a_series_keeps_the_most_of_each_interval() -> None:
    """A length lasts until the next is noted."""
    series = Series(10)
    for now, length in ((0, 3), (5, 8), (35, 1), (40, 0), (41, 0)):
        series.record(now, length)

    assert (series.interval, series.most) == (10, [8, 8, 8, 8, 0])


def test_a_series_of_a_long_time_has_longer_intervals() -> None:
    """And still knows the most."""
    series = Series(1)
    for now in range(10_000):
        series.record(now, 77 if now == 6_543 else 1)

    assert len(series.most) <= MOST_POINTS
    assert (series.interval, max(series.most), series.most[6_543 // series.interval]) == (16, 77, 77)


@pytest.mark.parametrize(
    ("work", "waits", "expected"),
    [
        (Work(9_000_000, [(7_200_000, 1)]), [1_800_000], 500),  # Two hours of many.
        (Work(9_000_000, [(7_200_000, 1)]), [1_800_000, 1_000], 50),  # A short wait among them.
        (Work(9_000_000, [(3, 1)]), [1_800_000], 1),  # Few are looked at one by one.
        (Work(9_000_000, [(3, 1)], is_paced=True), [1_800_000], 500),
        (Work(86_400_000 * 30, [(10**12, 1)]), [60_000], 5_000),  # A tenth of the wait, though a month is long.
        (Work(86_400_000 * 365, [(10**12, 1)]), [60_000], 30_000),  # For a year, half of it: nothing is rounded.
        (Work(86_400_000 * 365, [(10**12, 1)]), [60_000, 100_000], 20_000),  # And nothing of the other.
        (Work(86_400_000 * 365, [(10**12, 1)]), [60_000, 60_001], 5_000),  # None goes into both.
        (Work(86_400_000 * 30, [(10**12, 1)]), [61_000], 3_050),  # Not round, but nothing is rounded.
        (Work(9_000_000, [(7_200_000, 1)]), [0], 500),  # What is over at once can't be rounded.
        (Work(86_400_000 * 3650, [(10**12, 1)] * 4_000), [1_000], 500),  # Right, and too much.
    ],
)  # fmt: skip
def test_steps_are_as_fine_as_is_quick_and_as_waits_need(work: Work, waits: list[int], expected: int) -> None:
    """By what there is to do; never so long that a wait is rounded up by much."""
    assert work.step(waits) == expected


def test_too_many_steps_are_too_much() -> None:
    """Ten years by the millisecond are."""
    work = Work(315_360_000_000, [(10**12, 1)])

    assert work.is_too_much(1)
    assert not work.is_too_much(work.step())
    assert work.is_too_much(work.step([1_000]))
    assert (work.longest(500), work.is_too_much(500)) == (2_500_000_000, True)


@pytest.mark.parametrize(
    ("limit", "ttl", "expected"),
    [(5_000_000, "30m", "2,777/s"), (1_000_000, "15m", "1,111/s"), (10, "1s", "10/s"), (100, "1h", "100/h"), (1, "10d", "0.1/d")],
)  # fmt: skip
def test_what_a_room_holds(limit: int, ttl: str, expected: str) -> None:
    """Rounded down, in a unit that can be read."""
    assert rate_text(holds(limit, Duration.parse(ttl))) == expected


SCENE_TEXT = """
version: 1
delay:
  levels:
    1m: {expected_rate: 60/s}
    5m: {}
    1h: {expected_rate: 100/s}
exchanges:
  orders: {}
  audits: {type: headers}
routes:
  - {from: orders, key: [order.created, order.*.late], delay: 1m, to: work}
  - {key: store.updated, delay: 1m, to: work}
  - {from: audits, headers: {kind: order}, key: audit.done, delay: 5m, to: work}
  - {from: orders, key: plain, to: work}
"""


@pytest.fixture
def scene() -> Scene:
    """Three levels and four routes, one of them without a delay."""
    spec = read_spec(SCENE_TEXT, {}, file="topology.yaml")
    return Scene(spec, expand(spec))


def test_every_delayed_route_has_an_entry(scene: Scene) -> None:
    """Where its messages are published, with headers where these decide."""
    assert delayed_entries(scene) == [
        Entry("orders", Message("order.created")),
        Entry("delay.1m.exchange", Message("store.updated")),
        Entry("audits", Message("audit.done", {"kind": "order"})),
    ]


def test_routes_of_a_level_share_its_rate(scene: Scene) -> None:
    """A level that no route leads to is published to with any key."""
    assert entries_at(scene, "1m") == [
        Entry("delay.1m.exchange", Message("order.created"), 2),
        Entry("delay.1m.exchange", Message("store.updated"), 2),
    ]
    assert entries_at(scene, "1h") == [Entry("delay.1h.exchange", Message("any"), is_made_up=True)]
    assert [(entry.message.key, str(part)) for entry, part in expected_entries(scene)] == [
        ("order.created", "30/s"),
        ("store.updated", "30/s"),
        ("any", "100/s"),
    ]


def test_a_level_of_retries_is_published_to_with_their_keys() -> None:
    """So that what is expected there comes back to the queue it is a retry of."""
    text = "version: 1\ndelay: {levels: [10s]}\nqueues: {work: {}}\nretry: {work: {levels: [10s], max: 3, park: dlq}}\n"
    spec = read_spec(text, {}, file="topology.yaml")

    assert entries_at(Scene(spec, expand(spec)), "10s") == [Entry("delay.10s.exchange", Message("delay.retry.work"))]


def test_what_tightens_a_queue_most_comes_first() -> None:
    """Bytes count where the size is known."""
    settings = Settings(max_length=150, max_bytes=100_000)

    assert limits_of(settings, 1_000) == [Limit(100, "max_bytes"), Limit(150, "max_length")]
    assert limits_of(settings, 10) == [Limit(150, "max_length"), Limit(10_000, "max_bytes")]
    assert limits_of(settings, None) == [Limit(150, "max_length")]
    assert limits_of(Settings(), 10) == []


def test_what_happens_again_and_again_is_told_in_stretches() -> None:
    """What is close together is one."""
    found = Occurrence(gap=10)
    for now in (5, 15, 20, 31, 90):
        found.add(now, 2)

    assert (found.count, found.first, found.last) == (10, 5, 90)
    assert found.stretches == [Span(5, 20), Span(31, 31), Span(90, 90)]


def test_a_key_goes_where_a_route_takes_it(scene: Scene) -> None:
    """Patterns count; a key of no delayed route goes nowhere."""
    assert entries_with(scene, "order.eu.late") == [Entry("orders", Message("order.eu.late"))]
    assert entries_with(scene, "plain") == []
