"""Errors on their way to another process."""

import pickle

import pytest
from delayctl.publishers import NotConfirmed, NotSendable, Unroutable
from delayctl.publishers.choice import BeyondLadder
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError, InvalidTopology, Location, Problem

UNROUTABLE = Unroutable("no queue takes it", fix="look at the way", message_id="order-4711")


@pytest.mark.parametrize(
    "error",
    [
        BadOption("the delay 5 has no unit", fix="write 5s", where="topology.yaml"),
        InvalidTopology([Problem("late", Location("topology.yaml", 9), "mend it")]),
        UNROUTABLE,
        NotSendable("5 is no text"),
        BeyondLadder(Duration(9_000), Duration(1_000), Duration(7_000)),
    ],
)
def test_an_error_is_the_same_in_another_process(error: DelayctlError) -> None:
    """A pool of processes sends what its workers raise, and waits for ever for one that can't be read again."""
    other = pickle.loads(pickle.dumps(error))

    assert (type(other), str(other), other.args, vars(other)) == (type(error), str(error), error.args, vars(error))


def test_an_error_takes_others_along() -> None:
    """Each of them whole."""
    other = pickle.loads(pickle.dumps(NotConfirmed(["order-4712"], [UNROUTABLE], more=3)))

    assert (other.message_ids, other.more) == (("order-4712", "order-4711"), 3)
    assert [(type(each), each.message_id, each.what) for each in other.failures] == [
        (Unroutable, "order-4711", "no queue takes it")
    ]
