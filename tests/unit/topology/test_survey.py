"""A plan is carried out on the state that it was made for, or not at all."""

from dataclasses import replace
from typing import cast

import pytest
from delayctl.topology.diff import diff
from delayctl.topology.errors import StalePlan
from delayctl.topology.live import Backlog, Live
from delayctl.topology.management import Management
from delayctl.topology.plan import Plan
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.survey import check_fresh

from tests.support.examples import live_of, shop

SHOP, LONGER = shop("5m"), shop("5m", max_length=99)


class Reading:
    """Stands for the management API: reads the same state each time."""

    def __init__(self, live: Live) -> None:
        self.live = live

    def read(self, *_: object) -> Live:
        """The state, whatever is looked for."""
        return self.live

    def backlog(self, queue: str) -> Backlog:
        """What is in a queue of the state."""
        return self.live.backlog.get(queue, Backlog(0))


def check(plan: Plan, live: Live) -> None:
    """Check a plan on a broker that is in this state."""
    check_fresh(plan, cast(Management, Reading(live)), cast(RabbitBroker, Reading(live)))


def test_a_plan_for_this_state_is_fresh() -> None:
    """Messages of queues that the plan did not count on don't matter."""
    check(diff(LONGER, live_of(SHOP)), live_of(SHOP, {"orders.queue": 3}))


def test_a_queue_that_was_counted_on_to_be_empty_must_still_be() -> None:
    """What came meanwhile would be lost."""
    plan = diff(LONGER, live_of(SHOP, {"delay.5m.queue": 0}), accept_loss=["delay.5m.queue"])

    with pytest.raises(StalePlan, match="3 messages came into"):
        check(plan, live_of(SHOP, {"delay.5m.queue": 3}))


def test_a_plan_for_another_state_is_stale() -> None:
    """Someone has changed what it was made from."""
    with pytest.raises(StalePlan) as caught:
        check(diff(LONGER, live_of(SHOP)), live_of(LONGER))
    assert str(caught.value) == (
        "Error: the broker has changed since the plan was made\n  fix: plan again, and look at it again"
    )


def test_a_plan_that_only_writes_the_record_can_be_stale() -> None:
    """Its record would overwrite a newer one."""
    plan = diff(SHOP, replace(live_of(SHOP), record=None))

    assert plan.changes == ()
    with pytest.raises(StalePlan):
        check(plan, live_of(shop("1m 5m")))


def test_a_plan_that_writes_nothing_is_never_stale() -> None:
    """There is nothing that it could spoil."""
    check(diff(SHOP, live_of(SHOP)), live_of(shop("1m 5m")))
