"""What a plan depends on: the state it was made from, and the messages that are at stake."""

from dataclasses import replace

import pytest
from delayctl.topology.changes import Comparison
from delayctl.topology.diff import at_stake, fingerprint
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings
from delayctl.topology.record import record_of
from delayctl.topology.spec import LadderSpec, QueueSpec, Spec, WaitSpec

from tests.support.examples import ORDERS_QUEUE, live_of, shop
from tests.support.shop import (
    EXISTING,
    LONGER_QUEUE,
    SHOP,
    THEIR_BINDING,
    THEIR_EXCHANGE,
    WAY_OUT,
    with_exchange,
    with_queue,
    without,
)


class TestFingerprint:
    """A plan is for one state of the broker."""

    def changed(self, live: Live) -> bool:
        """Say whether this broker is another than the one after a clean apply."""
        record = record_of(SHOP)
        return fingerprint(record, SHOP.existing, live) != fingerprint(record, SHOP.existing, live_of(SHOP))

    def test_the_same_state_has_the_same_fingerprint(self) -> None:
        """Whatever order it is listed in."""
        live = live_of(SHOP)
        shuffled = replace(
            live,
            exchanges=dict(reversed(list(live.exchanges.items()))),
            queues=dict(reversed(list(live.queues.items()))),
        )

        assert not self.changed(shuffled)

    def test_messages_do_not_count(self) -> None:
        """They come and go all the time."""
        assert not self.changed(live_of(SHOP, {"delay.5m.queue": 3}))

    def test_what_is_elsewhere_does_not_count(self) -> None:
        """Another team's objects are none of our business."""
        elsewhere = Binding("their.exchange", "queue", "their.queue")

        assert not self.changed(
            with_queue(with_exchange(live_of(SHOP), THEIR_EXCHANGE, elsewhere), Queue("their.queue"))
        )

    @pytest.mark.parametrize(
        "live",
        [
            without(live_of(SHOP), "delay.5m.queue"),
            without(live_of(SHOP), "delay.5m.exchange"),
            with_queue(live_of(SHOP), LONGER_QUEUE),
            with_exchange(live_of(SHOP), Exchange("orders.exchange", "direct")),
            with_exchange(live_of(SHOP), THEIR_EXCHANGE, THEIR_BINDING),
            replace(live_of(SHOP), bindings=live_of(SHOP).bindings - {WAY_OUT}),
            replace(live_of(SHOP), policies=(Policy("p", ".*", "queues", 0, ()),)),
            replace(live_of(SHOP), operator_policies=(Policy("p", ".*", "queues", 0, ()),)),
            replace(live_of(SHOP), record=None),
            replace(live_of(SHOP), version="3.10.8"),
        ],
        ids=[
            "queue",
            "exchange",
            "argument",
            "type",
            "theirs",
            "binding",
            "policy",
            "operator policy",
            "record",
            "version",
        ],
    )
    def test_all_that_a_plan_was_made_from_counts(self, live: Live) -> None:
        """Any change of it makes the plan stale."""
        assert self.changed(live)

    def test_what_must_exist_counts(self) -> None:
        """It may have been replaced by something of the same name."""
        desired = EXISTING
        before, record = live_of(desired), record_of(desired)
        after = with_exchange(before, Exchange("orders.exchange", "direct"))

        assert fingerprint(record, desired.existing, before) != fingerprint(record, desired.existing, after)


def test_what_is_at_stake_is_counted_and_nothing_more() -> None:
    """A replacement of one queue among thousands asks for no more than it has to know."""
    desired = shop("1m 5m", queues=(ORDERS_QUEUE, QueueSpec("paid.queue", "classic")))
    live = with_queue(live_of(desired), Queue("paid.queue", Settings("classic", max_length=5)))

    assert at_stake(Comparison(desired, live)) == {"paid.queue", "delay.1m.queue", "delay.5m.queue"}


def test_where_nothing_changes_nothing_is_at_stake() -> None:
    """An idle plan counts no queue."""
    assert at_stake(Comparison(SHOP, live_of(SHOP))) == frozenset()


def test_a_ladder_with_steps_of_another_length_is_at_stake() -> None:
    """Also where others keep its queues from being changed: whether messages are under way decides about all the rest."""
    desired, there = (expand(Spec((), ladder=LadderSpec(Duration(ms), 2, WaitSpec()))) for ms in (1_000, 300))
    theirs = Policy("theirs", "^delay", "queues", 5, (("message-ttl", 100),))
    live = replace(live_of(there), policies=(theirs,))

    assert at_stake(Comparison(desired, live)) == {"delay.any.00.queue", "delay.any.01.queue"}
