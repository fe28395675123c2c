"""What follows from a broker's samples: rates, the age of the head, early departures, and a queue that is stuck."""

from collections.abc import Callable

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.figures import (
    Age,
    Early,
    Figures,
    Node,
    Rates,
    Samples,
    figures_from_api,
    gone_early,
    node_from_api,
    oldest,
    rates,
    stuck_for,
)

NOW = 1_700_000_000_000
TTL = Duration.parse("5m")


def samples(value_at: Callable[[int], int], seconds: int = 600, every: int = 5) -> Samples:
    """A value as a function of the seconds ago, sampled like a broker does."""
    return tuple((NOW - ago * 1000, value_at(ago)) for ago in range(seconds, -1, -every))


def steady(waiting: int, per_second: int, ready: int | None = None) -> Figures:
    """A queue that takes and gives at the same rate, and holds as many as ever."""
    return Figures(
        ready=waiting if ready is None else ready,
        published=samples(lambda ago: (10_000 - ago) * per_second),
        lengths=samples(lambda _: waiting),
    )


def burst(count: int, ago: int, *, left: int) -> Figures:
    """So many messages came at once, and so many of them are left."""
    return Figures(
        ready=left,
        published=samples(lambda at: count if at <= ago else 0),
        lengths=samples(lambda at: left if at <= ago else 0),
    )


class TestRates:
    """How fast messages come and go."""

    def test_what_came_in_and_is_not_there_has_left(self) -> None:
        """A queue that does not grow gives as much as it takes."""
        assert rates(steady(600, 2)) == Rates(2.0, 2.0)

    def test_a_burst_is_spread_over_the_minute(self) -> None:
        """Nothing has left yet."""
        assert rates(burst(30, 20, left=30)) == Rates(0.5, 0.0)

    def test_figures_of_different_moments_make_no_negative_rate(self) -> None:
        """The queue was looked at after the publishers were."""
        figures = Figures(ready=9, published=samples(lambda _: 0), lengths=samples(lambda ago: 0 if ago else 9))

        assert rates(figures) == Rates(0.0, 0.0)

    def test_without_samples_there_is_no_rate(self) -> None:
        """A broker that does not collect says nothing, and neither do we."""
        assert rates(Figures(ready=3)) is None


class TestOldest:
    """How long the head has waited."""

    def test_nothing_waits(self) -> None:
        """An empty queue has no oldest message; neither has one that nobody speaks of."""
        assert oldest(burst(5, 60, left=0), TTL) is None
        assert oldest(Figures(), TTL) is None

    def test_the_first_of_those_that_wait_came_when_its_count_was_reached(self) -> None:
        """Of 30 messages that came 100 seconds ago, the last 10 wait."""
        assert oldest(burst(30, 100, left=10), TTL) == Age(85_000, 120_000, "samples")

    def test_nothing_waits_longer_than_the_ttl(self) -> None:
        """Counts that were lost make the head look older than it can be."""
        age = oldest(steady(700, 2), TTL)

        assert age == Age(300_000, 300_000, "samples")

    def test_a_queue_that_was_empty_lately_is_not_called_old(self) -> None:
        """A message that the broker forgot to count does not make the one before it wait again, for all we know."""
        figures = Figures(
            ready=1, published=samples(lambda ago: int(ago <= 500)), lengths=samples(lambda ago: int(ago <= 10))
        )

        assert oldest(figures, TTL) == Age(30_000, 300_000, "samples")

    def test_a_broker_that_was_restarted_makes_nothing_younger(self) -> None:
        """It speaks of an empty queue for all the time before, and of a message since."""
        figures = Figures(ready=1, published=samples(lambda _: 0), lengths=samples(lambda ago: int(ago <= 10)))

        assert oldest(figures, TTL) == Age(0, 300_000, "ttl")

    def test_after_a_restart_only_the_ttl_bounds_it(self) -> None:
        """More wait than were counted since."""
        figures = Figures(ready=50, published=samples(lambda _: 3), lengths=samples(lambda _: 50))

        assert oldest(figures, Duration.parse("2h")) == Age(0, 7_200_000, "ttl")

    def test_without_samples_only_the_ttl_bounds_it(self) -> None:
        """A broker that collects nothing but lengths."""
        assert oldest(Figures(ready=5, head_timestamp_s=1), TTL) == Age(0, 300_000, "ttl")

    def test_the_publishers_timestamp_is_better_than_nothing(self) -> None:
        """Classic queues show it where publishers set it."""
        figures = Figures(ready=50, head_timestamp_s=NOW // 1000 - 90, lengths=samples(lambda _: 50))

        assert oldest(figures, Duration.parse("2h")) == Age(90_000, 90_000, "timestamp")


class TestGoneEarly:
    """What came in within the last TTL must still be there."""

    def test_an_overflow_is_counted(self) -> None:
        """Of 30 messages, 20 have gone a minute later although they should wait five."""
        early = gone_early(burst(30, 60, left=10), TTL)

        assert early == Early(20, Duration.parse("4m30s"))

    def test_a_steady_queue_lets_nothing_go_early(self) -> None:
        """Two per second for five minutes are 600."""
        assert gone_early(steady(600, 2), TTL) == Early(0, Duration.parse("4m30s"))

    def test_a_burst_that_is_not_counted_in_the_queue_yet_is_no_overflow(self) -> None:
        """Publishers are looked at before the queue is: the last moments count for nothing."""
        figures = Figures(ready=0, published=samples(lambda ago: 30 if ago <= 10 else 0), lengths=samples(lambda _: 0))

        assert gone_early(figures, TTL) == Early(0, Duration.parse("4m30s"))

    def test_a_long_ttl_is_watched_as_far_as_samples_go(self) -> None:
        """Ten minutes of a day, where there is no more."""
        early = gone_early(burst(30, 60, left=10), Duration.parse("1d"))

        assert early == Early(20, Duration.parse("9m45s"))

    @pytest.mark.parametrize("ttl", ["1s", "30s"])
    def test_a_short_ttl_can_not_be_told(self, ttl: str) -> None:
        """Samples are too far apart."""
        assert gone_early(burst(30, 60, left=0), Duration.parse(ttl)) is None

    def test_a_queue_that_nobody_published_to_lost_nothing(self) -> None:
        """It has a history of its own all the same."""
        assert gone_early(Figures(ready=0, lengths=samples(lambda _: 0)), TTL) == Early(0, Duration.parse("4m30s"))

    def test_without_samples_there_is_no_telling(self) -> None:
        """Not counted is not none."""
        assert gone_early(Figures(ready=3), TTL) is None


class TestStuck:
    """Nothing leaves although messages have waited longer than the TTL."""

    def test_a_queue_that_lets_nothing_go(self) -> None:
        """Three messages for ten minutes, and a TTL of five."""
        figures = Figures(ready=3, published=samples(lambda _: 3), lengths=samples(lambda _: 3))

        assert stuck_for(figures, TTL) == Duration.parse("5m30s")
        assert oldest(figures, TTL) == Age(330_000, None, "samples")

    @pytest.mark.parametrize(
        ("figures", "ttl"),
        [
            (Figures(ready=0), TTL),
            (steady(600, 2), TTL),
            (burst(30, 60, left=30), TTL),
            (burst(30, 400, left=0), TTL),
            (Figures(ready=3, published=samples(lambda ago: int(ago < 9)), lengths=samples(lambda _: 3)), TTL),
            (steady(600, 2), Duration.parse("1d")),
            (Figures(ready=3, lengths=samples(lambda ago: 4 if ago > 60 else 3)), Duration.parse("1d")),
        ],
        ids=["empty", "steady", "young", "emptied", "one came, one went", "steady for long", "one left, not counted"],
    )
    def test_a_queue_that_something_left(self, figures: Figures, ttl: Duration) -> None:
        """It is not stuck, however long its TTL is, and whether or not anybody counts what comes in."""
        assert stuck_for(figures, ttl) == Duration(0)

    @pytest.mark.parametrize(
        ("figures", "ttl"),
        [
            (Figures(), TTL),
            (Figures(ready=3), TTL),
            (Figures(ready=3, lengths=samples(lambda _: 3)), TTL),
            (Figures(ready=3, published=samples(lambda _: 3, 200), lengths=samples(lambda _: 3, 200)), TTL),
            (
                Figures(ready=3, published=samples(lambda _: 3, 3_600, 60), lengths=samples(lambda _: 3, 3_600, 60)),
                Duration.parse("1h"),
            ),
        ],
        ids=["nothing said", "no samples", "not counted", "short history", "longer than samples go back"],
    )
    def test_there_may_be_no_telling(self, figures: Figures, ttl: Duration) -> None:
        """Neither that it is stuck nor that it is not; so its age is no longer than the TTL, for all we know."""
        age = oldest(figures, ttl)

        assert stuck_for(figures, ttl) is None
        assert age is None or age.at_most_ms == ttl.ms


class TestReading:
    """The management API's answers."""

    def test_a_queue_with_two_grains_of_samples(self) -> None:
        """Coarse samples serve where there are no fine ones: they lag, and run ahead of the clock."""
        fine = _history((1_000_000, 7), (995_000, 5))
        coarse = _history((1_020_000, 3), (960_000, 2), (900_000, 1))
        item = {
            "messages_ready": 4,
            "messages_unacknowledged": 2,
            "messages_dlx": 1,
            "message_bytes": 70,
            "consumers": 0,
            "state": "running",
            "head_message_timestamp": 1_700_000_000,
        }

        figures = figures_from_api(item, fine, coarse)

        expected = ((900_000, 1), (960_000, 2), (995_000, 5), (1_000_000, 7))
        assert figures == Figures(4, 2, 1, 70, 0, "running", 1_700_000_000, expected, expected)
        assert (figures.waiting, figures.now_ms) == (7, 1_000_000)

    def test_a_queue_that_the_broker_has_said_nothing_of(self) -> None:
        """What is missing is not zero."""
        figures = figures_from_api({"head_message_timestamp": ""}, {}, {})

        assert figures == Figures()
        assert figures.waiting is None

    def test_a_node(self) -> None:
        """A node that is down says little else."""
        alarmed = {"name": "a", "running": True, "mem_alarm": True, "disk_free_alarm": True, "partitions": ["b"]}

        assert node_from_api(alarmed) == Node("a", True, True, True, True)
        assert node_from_api({"name": "b", "running": False}) == Node("b", False)


def _history(*pairs: tuple[int, int]) -> dict[str, object]:
    details = {"samples": [{"timestamp": at, "sample": value} for at, value in pairs]}
    return {"messages_details": details, "message_stats": {"publish_details": details}}
