"""Where messages wait: in what the file asks for, in what goes, and in what stands in for a queue that is changed."""

from dataclasses import replace

from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Figures, Statistics
from delayctl.topology.live import Live
from delayctl.topology.model import Queue, Settings
from delayctl.topology.record import record_of
from delayctl.topology.status import Facts, status_of, waiting_queues
from delayctl.topology.waiting import Waiting, waiting_in

from tests.support.examples import live_of, shop

SHOP = shop("1m 5m")
WAITS = Settings(ttl=Duration(20_000), dead_letter_exchange="delay.exchange")
FIVE = Waiting("delay.5m.queue", "5m", Duration(300_000), True)
ONE = Waiting("delay.1m.queue", "1m", Duration(60_000), True)


def also(live: Live, *queues: Queue) -> Live:
    """A broker with further queues that were applied."""
    assert live.record is not None
    record = live.record.union(record_of(queues))
    return replace(live, queues={**live.queues, **{queue.name: queue for queue in queues}}, record=record)


def test_what_goes_and_what_stands_in_come_last() -> None:
    """Under the names by which people ask for them."""
    live = also(live_of(SHOP), Queue("delay.5m.next.queue", WAITS), Queue("delay.12s.queue", WAITS))

    found = waiting_in(SHOP, live)

    assert found == (
        ONE,
        FIVE,
        Waiting("delay.12s.queue", "12s", Duration(20_000), True),
        Waiting("delay.5m.next.queue", "5m.next", Duration(20_000), True),
    )
    assert [place.names for place in found[2:]] == [("12s",), ("5m.next", "5m")]


def test_what_was_applied_and_does_not_wait_is_left_out() -> None:
    """And so is what others made, whatever it is called."""
    live = also(live_of(SHOP), Queue("orders.old.queue"))
    theirs = replace(live, queues={**live.queues, "delay.1h.queue": Queue("delay.1h.queue", WAITS)})

    assert waiting_in(SHOP, theirs) == (ONE, FIVE)


def test_a_queue_that_is_declared_anew_is_not_looked_for() -> None:
    """Between the two there is none, and what comes waits in the next one."""
    live = also(live_of(SHOP), Queue("delay.5m.next.queue", WAITS))
    without = replace(live, queues={name: q for name, q in live.queues.items() if name != "delay.5m.queue"})

    assert [place.queue for place in waiting_in(SHOP, without)] == ["delay.1m.queue", "delay.5m.next.queue"]


def test_without_a_broker_the_file_tells() -> None:
    """Of other queues too, by what it asks for."""
    assert waiting_in(SHOP, Live()) == (ONE, FIVE)


def test_a_status_counts_them() -> None:
    """So that figures and alarms do not lose sight of what waits there."""
    live = also(live_of(SHOP), Queue("delay.12s.queue", WAITS))
    figures = {name: Figures(ready=7) for name in waiting_queues(SHOP, live)}

    levels = status_of(Facts(SHOP, (), diff(SHOP, live), live, Statistics(figures, ()))).levels

    assert [(level.name, level.waiting, level.is_own) for level in levels] == [
        ("1m", 7, True),
        ("5m", 7, True),
        ("12s", 7, True),
    ]
