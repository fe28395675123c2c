"""What the exit code says."""

from collections.abc import Sequence

from delayctl.topology.execute import Done, Outcome
from delayctl.topology.plan import Plan

DONE = 0
FAILED = 1
CHANGES_PENDING = 2  # Only with `plan --detailed-exitcode`.
PARTLY_APPLIED = 3
USAGE = 64


def after_apply(plan: Plan, outcomes: Sequence[Outcome]) -> int:
    """0 when all is as the file says, 3 when some of it is or something has to be waited for, 1 when nothing could be done."""
    done = sum(isinstance(outcome, Done) for outcome in outcomes)
    if done < len(plan.changes) or plan.refusals:
        return after_failure(outcomes)
    return PARTLY_APPLIED if plan.waits or plan.afterwards else DONE


def after_failure(outcomes: Sequence[Outcome]) -> int:
    """3 when something was done before, 1 when nothing was."""
    return PARTLY_APPLIED if any(isinstance(outcome, Done) for outcome in outcomes) else FAILED
