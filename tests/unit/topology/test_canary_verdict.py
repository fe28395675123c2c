"""What became of canaries, and what that says of a way."""

from collections.abc import Mapping
from typing import Any

import pytest
from delayctl.topology.canary import CANARY, Flight, Observed, Probe, Proof, Sighting, Task, Trouble
from delayctl.topology.canary_verdict import prove
from delayctl.topology.duration import Duration
from delayctl.topology.figures import Figures

RUN = "cafe"
QUEUE = "delay.5s.queue"
PROBE = Probe("level", "5s", "delay.5s.exchange", "delay.verify.cafe.1", Duration(5_000), (QUEUE,), {"delay-0": True})
EXPIRED = {"queue": QUEUE, "reason": "expired"}
HEADERS = {"delay-0": True, CANARY: RUN, "x-death": [EXPIRED]}


def seen(after_ms: float = 5_004, *, key: str = PROBE.key, headers: Mapping[str, Any] | None = None) -> Sighting:
    """A canary that came out after so long."""
    return Sighting(1_000.0, 1_000.0 + after_ms, key, {**HEADERS, **(headers or {})})


def died(*deaths: object) -> Sighting:
    """A canary that left its queues like this."""
    return seen(headers={"x-death": list(deaths)})


def proof(
    observed: Observed, *, task: Task | None = None, hasten_ms: int | None = None, figures: Figures | None = None
) -> Proof:
    """What is made of it."""
    task = task or Task(PROBE, Flight(PROBE, observed.sent, hasten_ms))
    known = {QUEUE: figures} if figures else {}
    return prove(task, observed, run=RUN, max_lateness=Duration(1_000), figures=known, file="topology.yaml")


def names(found: Proof) -> list[str]:
    """The troubles, by name."""
    return [trouble.name for trouble in found.troubles]


def test_all_is_well() -> None:
    """Canaries that came once, in time, with key and headers prove a way; lateness is counted from when they were due."""
    found = proof(Observed(2, (seen(5_020), seen(5_004))))

    assert found == Proof(PROBE, "canaries", (), Observed(2, (seen(5_020), seen(5_004))))
    assert (found.is_proved, found.lateness) == (True, (4, 20))


def test_the_brokers_grain_is_not_early() -> None:
    """Whole milliseconds on one side and fractions on the other."""
    assert names(proof(Observed(1, (seen(4_999.4),)))) == []


@pytest.mark.parametrize(
    ("sighting", "expected"),
    [
        (seen(4_000), ["early"]),
        (seen(6_001), ["late"]),
        (seen(key="other"), ["key-changed"]),
        (seen(headers={CANARY: "beef"}), ["headers-changed"]),
        (died({"queue": QUEUE, "reason": "maxlen"}), ["pushed-out"]),
        (died({"queue": QUEUE, "reason": "rejected"}), ["not-expired"]),
        (died(), ["not-expired"]),
        (died("nonsense"), ["not-expired"]),
        (died({"queue": "delay.5s.next.queue", "reason": "expired"}), []),
    ],
)
def test_one_sighting(sighting: Sighting, expected: list[str]) -> None:
    """Each of them is told apart; a queue of another name, as in the middle of a change, is none."""
    assert names(proof(Observed(1, (sighting,)))) == expected


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (Observed(2, refusals=("no", "no")), "refused"),
        (Observed(2, unconfirmed=2), "unconfirmed"),
        (Observed(2, unconfirmed=2, is_blocked=True), "blocked"),
        (Observed(2, (seen(), seen()), twice=1), "doubled"),
        (Observed(2, (seen(),)), "missing"),
    ],
)
def test_what_became_of_all(observed: Observed, expected: str) -> None:
    """Not taken, not answered, doubled and not there are told apart."""
    assert names(proof(observed)) == [expected]


def test_a_refused_route_is_not_sent_for_rights_that_do_not_help() -> None:
    """What routes begin at is not among the rights of a verifier."""
    route = Probe("route", "orders", "orders.exchange", "order.created", Duration(5_000), (QUEUE,))
    refused = Observed(1, refusals=("no",))

    [level] = proof(refused).troubles
    [through] = proof(refused, task=Task(route, Flight(route, 1))).troubles

    room = "see that the queue has room (delayctl status topology.yaml), and that the user may "
    assert level.fix == room + "publish (delayctl permissions topology.yaml --role verifier)"
    assert through.fix == (
        room + "write to 'orders.exchange', as the role verifier may where that is a delay; "
        "without --through-routes nothing is sent there"
    )


def test_how_much_is_at_large() -> None:
    """Refused canaries are nowhere; the others may come out yet."""
    observed = Observed(5, (seen(),), refusals=("no",), unconfirmed=2)

    assert (observed.missing, observed.at_large) == (1, 3)
    assert Observed(1, (seen(),), refusals=("nacked, and came all the same",)).missing == 0


def test_hastened_canaries_tell_nothing_of_time() -> None:
    """They left before the time was up, as they should."""
    found = proof(Observed(1, (seen(500),)), hasten_ms=500)

    assert (found.how, found.troubles, found.lateness) == ("hastened", (), ())


@pytest.mark.parametrize(
    ("figures", "why"),
    [
        (None, "delay.5s.queue is gone, and they with it"),
        (Figures(0, consumers=2), "delay.5s.queue has 2 consumers, and nobody may consume from a delay queue"),
        (Figures(0, state="down"), "delay.5s.queue is down"),
        (
            Figures(0, dead_lettering=32, state="running"),
            "delay.5s.queue can't get rid of 32 messages that it owes to the exit",
        ),
        (Figures(7), "7 messages still in delay.5s.queue, the first perhaps with a longer TTL"),
        (Figures(0), "the broker does not say where they are"),
    ],
)
def test_why_a_canary_is_missing(figures: Figures | None, why: str) -> None:
    """As far as the queue that it was to wait in tells."""
    (trouble,) = proof(Observed(1), figures=figures).troubles

    assert trouble.what == f"1 of 1 canary did not come in time: {why}"


def test_what_keeps_canaries_in_an_at_least_once_queue_is_for_the_doctor() -> None:
    """Mostly a target that refuses, which no apply mends."""
    (trouble,) = proof(Observed(1), figures=Figures(0, dead_lettering=32)).troubles

    assert trouble.fix == "see what keeps them there: delayctl doctor topology.yaml"


def test_the_objects_tell_why_canaries_were_refused() -> None:
    """The cause says more than what the broker answered."""
    cause = Trouble("unroutable", "delay.5s.exchange leads nowhere", "delayctl apply")
    task = Task(PROBE, Flight(PROBE, 1), (cause,))

    assert proof(Observed(1, refusals=("no",)), task=task).troubles == (cause,)


def test_canaries_have_the_last_word() -> None:
    """What the objects let expect and did not happen is not told; what no canary can refute is."""
    expected, known = Trouble("unroutable", "it leads nowhere", ""), Trouble("no-net", "there is no net", "")
    task = Task(PROBE, Flight(PROBE, 1), (expected,), (known,))

    assert proof(Observed(1, (seen(),)), task=task).troubles == (known,)


def test_the_objects_tell_how_to_mend_it() -> None:
    """What was seen, with the fix of its cause."""
    task = Task(PROBE, Flight(PROBE, 1), (Trouble("early", "messages wait 4s", "remove the policy theirs"),))

    (trouble,) = proof(Observed(1, (seen(4_000),)), task=task).troubles

    assert trouble == Trouble("early", "1 of 1 canary came early: after 4s instead of 5s", "remove the policy theirs")


@pytest.mark.parametrize("hasten_ms", [None, 500])
def test_a_slow_broker_does_not_make_up_for_a_short_wait(hasten_ms: int | None) -> None:
    """How long others wait is told by what is in force, also where these canaries came in time or were hastened."""
    cause = Trouble("early", "messages wait 4s", "remove the policy theirs")
    task = Task(PROBE, Flight(PROBE, 1, hasten_ms), (cause,))

    assert proof(Observed(1, (seen(),)), task=task).troubles == (cause,)


def test_without_canaries_the_objects_are_all_there_is() -> None:
    """And the note says why there were none."""
    expected, known = Trouble("early", "", ""), Trouble("no-net", "", "")
    task = Task(PROBE, expected=(expected,), known=(known,), note="a reason")

    found = prove(task, None, run=RUN, max_lateness=Duration(0), figures={}, file="topology.yaml")

    assert found == Proof(PROBE, "structure", (known, expected), note="a reason")
