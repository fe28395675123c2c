"""What if so many messages come: backlogs, overflows, slow consumers and absences, counted to the message."""

from typing import Any

import pytest
from delayctl.simulator.what_if import what_if
from delayctl.simulator.what_if_answer import Account, Answer, Occurrence
from delayctl.simulator.what_if_scenario import Scenario
from delayctl.simulator.what_if_traffic import Lump, Span, Stream, with_bursts
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from delayctl.topology.rate import Rate
from delayctl.topology.routing import Message, Network

MINUTE, HOUR = 60_000, 3_600_000
WAIT, WORK, PARKED = "delay.30m.queue", "work.queue", "delay.unrouted.queue"


def network(settings: str = "{}", *, queues: str = "{}") -> Network:
    """A wait of half an hour, and a queue behind it."""
    text = f"""
version: 1
delay: {{levels: {{30m: {settings}}}}}
queues: {queues}
routes: [{{key: order, delay: 30m, to: {WORK}}}]
"""
    return Network.of_topology(expand(read_spec(text, {}, file="topology.yaml")))


def even(rate: str, length: int = 2 * HOUR, key: str = "order") -> Stream:
    """Orders at a rate, straight to the level."""
    return Stream("delay.30m.exchange", Message(key), with_bursts(Rate.parse(rate), length, ()))


def lumps(*pairs: tuple[int, int]) -> Stream:
    """So many orders at these times."""
    return Stream("delay.30m.exchange", Message("order"), lumps=tuple(Lump(*pair) for pair in pairs))


def run(*streams: Stream, settings: str = "{}", queues: str = "{}", step: int = 1000, **scenario: Any) -> Answer:
    """The answer for one level and its queue; what is not routed is parked."""
    return what_if(network(settings, queues=queues), Scenario(streams, step, **scenario), parking={PARKED})


def account(answer: Answer, name: str = WAIT) -> Account:
    """One queue of the answer."""
    return answer.accounts[name]


def test_thousand_a_second_for_half_an_hour_need_1_800_000() -> None:
    """The figure that the room of a level is reckoned by."""
    answer = run(even("1000/s"), settings="{max_length: 5000000}")

    found = account(answer)
    assert (found.peak, found.peak_at) == (1_800_000, 30 * MINUTE)
    assert (found.arrived, found.expired, found.left_early.count) == (7_200_000, 7_200_000, 0)
    assert (found.waiting_when_traffic_ends, found.waiting, found.empty_at) == (1_800_000, 0, 150 * MINUTE)
    assert (account(answer, WORK).consumed, account(answer, WORK).late.most) == (7_200_000, 0)


@pytest.mark.parametrize(("rate", "peak", "overflows"), [("2777/s", 4_998_600, False), ("2778/s", 5_000_000, True)])
def test_five_million_at_half_an_hour_hold_2777_a_second(rate: str, peak: int, overflows: bool) -> None:
    """One more, and the oldest begin to leave early."""
    found = account(run(even(rate), settings="{max_length: 5000000}"))

    assert (found.peak, found.left_early.count > 0) == (peak, overflows)


def test_at_max_length_the_oldest_leave_early_and_none_is_lost() -> None:
    """With room for 1,000,000 each waits as long as the room lasts at this rate."""
    answer = run(even("1000/s"), settings="{max_length: 1000000}")

    found = account(answer)
    assert (found.peak, found.full_from) == (1_000_000, 1_000_000)
    assert found.left_early == Occurrence(6_200_000, 1_001_000, 2 * HOUR)
    assert (found.early.least, found.early.median, found.early.most) == (800_000, 800_000, 800_000)
    assert (found.expired, found.empty_at) == (1_000_000, 150 * MINUTE)
    assert account(answer, WORK).consumed == 7_200_000
    assert account(answer, WORK).late.least == -800_000


def test_between_two_overflows_nothing_leaves_early() -> None:
    """Each is a stretch of its own."""
    found = account(run(lumps((0, 15), (HOUR, 15)), settings="{max_length: 10}"))

    assert found.left_early == Occurrence(10, 0, HOUR)
    assert found.left_early.stretches == [Span(0, 0), Span(HOUR, HOUR)]


def test_a_lump_larger_than_the_room_leaves_by_its_head() -> None:
    """What just came in is the oldest there is."""
    found = account(run(lumps((5_000, 30)), settings="{max_length: 10}"))

    assert (found.left_early.count, found.early.least, found.expired) == (20, 30 * MINUTE, 10)


def test_a_classic_queue_that_refuses_takes_again_what_fits() -> None:
    """The publisher hears of the rest; the next is taken when one has left."""
    found = account(
        run(lumps((0, 12), (1_000, 1), (30 * MINUTE, 3)), settings="{max_length: 10, overflow: reject-publish}")
    )

    assert (found.refused, found.arrived, found.expired) == (Occurrence(3, 0, 1_000), 16, 13)
    assert found.peak == 10


def test_a_quorum_queue_that_refused_waits_for_a_fifth_to_be_free() -> None:
    """It takes one more than its limit; then none before no more than 80 percent are left."""
    found = account(
        run(
            lumps((0, 1), (1_000, 1), (2_000, 20), (30 * MINUTE, 1), (30 * MINUTE + 2_000, 1)),
            settings="{type: quorum, max_length: 10, overflow: reject-publish}",
        )
    )

    assert found.peak == 11
    assert found.refused == Occurrence(12, 2_000, 30 * MINUTE)


def test_slow_consumers_fall_behind_and_catch_up() -> None:
    """800/s of 1,000/s leave 200 every second; all are through when 7,200,000 are taken."""
    answer = run(even("1000/s"), settings="{max_length: 5000000}", consume={WORK: Rate.parse("800/s")})

    work = account(answer, WORK)
    assert (work.peak, work.peak_at) == (1_440_000, 150 * MINUTE)
    assert (work.consumed, work.empty_at) == (7_200_000, 3 * HOUR)
    assert (work.late.least, work.late.median, work.late.most) == (0, 15 * MINUTE, 30 * MINUTE)
    assert (answer.peak, answer.peak_at) == (1_800_000 + 1_080_000, 2 * HOUR)


def test_consumers_that_keep_up_find_a_backlog_when_they_return() -> None:
    """Five minutes of 10/s wait for them."""
    answer = run(even("10/s", HOUR), consumers_away={None: (Span(40 * MINUTE, 45 * MINUTE),)})

    work = account(answer, WORK)
    assert (work.peak, work.empty_at, work.late.most) == (3_000, 45 * MINUTE, 5 * MINUTE)


def test_the_wait_goes_on_while_the_broker_is_away() -> None:
    """What is due meanwhile comes out when it is back; what is due later is on time."""
    answer = run(lumps((0, 5), (10 * MINUTE, 7)), broker_away=(Span(25 * MINUTE, 35 * MINUTE),))

    late = account(answer, WORK).late
    assert (late.least, late.most, late.above(0).total) == (0, 5 * MINUTE, 5)
    assert answer.end == 40 * MINUTE


def test_publishers_hold_back_what_comes_while_the_broker_is_away() -> None:
    """Its wait begins when it is published; by the time that was meant it is late."""
    answer = run(even("10/s", 20 * MINUTE), broker_away=(Span(10 * MINUTE, 15 * MINUTE),))

    assert (answer.held.count, answer.failed.count, answer.published) == (3_000, 0, 12_000)
    assert account(answer).arrived == 12_000
    assert account(answer, WORK).late.most == 5 * MINUTE
    assert account(answer, WORK).late.above(0).total == 3_000


def test_publishers_may_give_up() -> None:
    """What they can't publish is gone."""
    answer = run(even("10/s", 20 * MINUTE), broker_away=(Span(10 * MINUTE, 15 * MINUTE),), gives_up=True)

    assert (answer.held.count, answer.failed.count) == (0, 3_000)
    assert account(answer).arrived == 9_000


def test_a_full_queue_behind_the_wait_loses_what_it_refuses() -> None:
    """Nobody hears of it: the publisher has long had its confirm."""
    queues = "{work.queue: {arguments: {x-max-length: 4, x-overflow: reject-publish}}}"

    answer = run(lumps((0, 10)), queues=queues, consumers_away={WORK: (Span(0, HOUR),)})

    work = account(answer, WORK)
    assert (work.arrived, work.lost.count, work.refused.count, work.consumed) == (10, 6, 0, 4)


def test_dead_lettered_at_least_once_it_is_kept_and_tried_again() -> None:
    """Every three minutes, until there is room."""
    queues = "{work.queue: {arguments: {x-max-length: 4, x-overflow: reject-publish}}}"

    answer = run(
        lumps((0, 10)), settings="{profile: safe}", queues=queues, consumers_away={WORK: (Span(0, 32 * MINUTE),)}
    )

    work = account(answer, WORK)
    assert (work.lost.count, work.consumed) == (0, 10)
    assert (account(answer).empty_at, work.late.most) == (33 * MINUTE, 3 * MINUTE)


def test_a_queue_behind_the_wait_deletes_its_oldest() -> None:
    """With drop-head and nowhere to dead-letter to."""
    answer = run(
        lumps((0, 10)),
        queues="{work.queue: {arguments: {x-max-length: 4}}}",
        consumers_away={WORK: (Span(0, HOUR),)},
    )

    assert (account(answer, WORK).left_early.count, account(answer, WORK).consumed) == (6, 4)
    assert answer.ends == {"lost": 6}


def test_what_is_pushed_out_towards_where_it_came_from_is_dropped() -> None:
    """A queue that dead-letters to the exit would get it back at once."""
    arguments = "{x-max-length: 4, x-dead-letter-exchange: delay.exchange}"

    answer = run(
        lumps((0, 10)),
        queues=f"{{work.queue: {{arguments: {arguments}}}}}",
        consumers_away={WORK: (Span(0, HOUR),)},
    )

    assert answer.ends == {"dropped": 6}


def test_what_has_no_way_out_is_parked_and_stays() -> None:
    """Nobody consumes there."""
    answer = run(even("10/s", MINUTE, key="unheard.of"))

    assert (account(answer, PARKED).waiting, account(answer, PARKED).consumed) == (600, 0)
    assert WORK not in answer.accounts


def test_what_no_exchange_takes_is_returned() -> None:
    """And counted."""
    answer = run(Stream("amq.direct", Message("nobody"), lumps=(Lump(0, 3),)))

    assert (answer.accounts, answer.ends) == ({}, {"handed_over": 3})


def test_without_limits_the_room_that_is_needed_is_seen() -> None:
    """The same question, as if there were no max_length."""
    found = account(run(even("1000/s"), settings="{max_length: 10}", is_unlimited=True))

    assert (found.peak, found.left_early.count) == (1_800_000, 0)


def test_bytes_are_a_limit_where_the_size_is_known() -> None:
    """Room for 1,000 bytes is room for ten messages of a hundred."""
    settings = "{max_length: unlimited, max_bytes: 1000}"

    assert account(run(lumps((0, 15)), settings=settings)).left_early.count == 0
    assert account(run(lumps((0, 15)), settings=settings, message_bytes=100)).left_early.count == 5


def test_a_consumer_of_a_queue_with_a_ttl_takes_before_it_expires() -> None:
    """Asked for by name; what it does not get to in time goes on."""
    answer = run(lumps((0, 10)), consume={WAIT: Rate.parse("1/m")})

    assert (account(answer).consumed, account(answer).expired) == (10, 0)


def test_a_long_drain_is_run_in_longer_steps() -> None:
    """A million at one a minute: nearly two years, told to a few hours."""
    answer = run(lumps((0, 1_000_000)), settings="{max_length: unlimited}", consume={WORK: Rate.parse("1/m")})

    assert answer.end == pytest.approx(1_000_000 * MINUTE + 30 * MINUTE, rel=0.001)
