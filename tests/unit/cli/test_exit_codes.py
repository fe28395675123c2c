"""What the exit code says."""

from dataclasses import replace

import pytest
from delayctl.cli.exit_codes import CHANGES_PENDING, DONE, FAILED, PARTLY_APPLIED, USAGE, after_apply
from delayctl.topology.diff import diff
from delayctl.topology.errors import Unreachable
from delayctl.topology.execute import Done, Failed, Outcome, Skipped
from delayctl.topology.live import Live
from delayctl.topology.plan import Plan, Refusal

from tests.support.examples import live_of, shop

NOTHING = diff(shop("5m"), live_of(shop("5m")))
FIRST = replace(diff(shop("5m"), Live()), changes=diff(shop("5m"), Live()).changes[:2])
REFUSED = (Refusal("queue q", "holds 3 messages that would be lost", "wait"),)
A, B = FIRST.changes
GONE = Unreachable("gone")


def test_the_codes_are_a_promise() -> None:
    """Scripts depend on them."""
    assert (DONE, FAILED, CHANGES_PENDING, PARTLY_APPLIED, USAGE) == (0, 1, 2, 3, 64)


@pytest.mark.parametrize(
    ("plan", "outcomes", "code"),
    [
        (NOTHING, [], DONE),
        (FIRST, [Done(A), Done(B)], DONE),
        (FIRST, [Done(A), Failed(B, GONE)], PARTLY_APPLIED),
        (FIRST, [Failed(A, GONE), Skipped(B)], FAILED),
        (FIRST, [Done(A)], PARTLY_APPLIED),
        (replace(FIRST, refusals=REFUSED), [Done(A), Done(B)], PARTLY_APPLIED),
        (replace(NOTHING, refusals=REFUSED), [], FAILED),
    ],
    ids=["nothing", "all", "some", "none", "interrupted", "all but refused", "only refused"],
)
def test_an_apply_is_done_partly_done_or_failed(plan: Plan, outcomes: list[Outcome], code: int) -> None:
    """0 only when the broker is as the file says."""
    assert after_apply(plan, outcomes) == code
