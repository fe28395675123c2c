"""A plan is carried out on the state that it was made for, or not at all."""

from dataclasses import replace
from typing import cast

import pytest
from delayctl.topology.diff import diff
from delayctl.topology.errors import StalePlan
from delayctl.topology.live import Live
from delayctl.topology.management import Management
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


def reading(live: Live) -> Management:
    """A management API that reads this state."""
    return cast(Management, Reading(live))


def test_a_plan_for_this_state_is_fresh() -> None:
    """Messages that came and went meanwhile don't matter."""
    check_fresh(diff(LONGER, live_of(SHOP)), reading(live_of(SHOP, {"delay.5m.queue": 3})))


def test_a_plan_for_another_state_is_stale() -> None:
    """Someone has changed what it was made from."""
    with pytest.raises(StalePlan) as caught:
        check_fresh(diff(LONGER, live_of(SHOP)), reading(live_of(LONGER)))
    assert str(caught.value) == (
        "Error: the broker has changed since the plan was made\n  fix: plan again, and look at it again"
    )


def test_a_plan_that_only_writes_the_record_can_be_stale() -> None:
    """Its record would overwrite a newer one."""
    plan = diff(SHOP, replace(live_of(SHOP), record=None))

    assert plan.changes == ()
    with pytest.raises(StalePlan):
        check_fresh(plan, reading(live_of(shop("1m 5m"))))


def test_a_plan_that_writes_nothing_is_never_stale() -> None:
    """There is nothing that it could spoil."""
    check_fresh(diff(SHOP, live_of(SHOP)), reading(live_of(shop("1m 5m"))))
