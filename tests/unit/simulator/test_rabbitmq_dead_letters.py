"""Where dead messages go, what they carry, and when they are dropped for going round."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from delayctl.simulator.rabbitmq import Broker, Delivery, Properties
from delayctl.simulator.rabbitmq_events import DeadLettered, Dropped, Kept, Published
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.model import Binding, Exchange, Queue, Settings

from tests.unit.simulator.rabbitmq_parts import bodies, broker_with, delay


def _headers(broker: Broker, queue: str) -> dict[str, Any]:
    delivery = broker.get(queue, no_ack=True)
    assert delivery is not None
    return delivery.headers


def test_headers_tell_of_the_first_and_the_last_death() -> None:
    """And x-death of all of them, the latest first."""
    broker = broker_with(delay("a", 1_000, to="b"), delay("b", 2_000), Queue("work"))
    broker.publish("", "a", headers={"tenant": "x"})
    broker.clock.run()

    assert _headers(broker, "work") == {
        "tenant": "x",
        "x-death": [
            {"count": 1, "reason": "expired", "queue": "b", "time": 3, "exchange": "", "routing-keys": ["b"]},
            {"count": 1, "reason": "expired", "queue": "a", "time": 1, "exchange": "", "routing-keys": ["a"]},
        ],
        "x-first-death-queue": "a",
        "x-first-death-reason": "expired",
        "x-first-death-exchange": "",
        "x-last-death-queue": "b",
        "x-last-death-reason": "expired",
        "x-last-death-exchange": "",
    }


def test_old_brokers_tell_of_the_first_death_only() -> None:
    """Before 4.0 there is no x-last-death."""
    broker = broker_with(delay("a", 1_000), Queue("work"), version="3.10")
    broker.publish("", "a")
    broker.clock.run()

    assert sorted(_headers(broker, "work")) == [
        "x-death",
        "x-first-death-exchange",
        "x-first-death-queue",
        "x-first-death-reason",
    ]


@pytest.mark.parametrize("kind", ["classic", "quorum"])
@pytest.mark.parametrize("version", ["3.10", "4.3"])
def test_what_was_rejected_leaves_before_what_expires_then(kind: Literal["classic", "quorum"], version: str) -> None:
    """Its consumer is free, takes the next, and the one behind has come to the head: as both brokers do it, always."""
    broker = broker_with(delay("q", None, type=kind), Queue("work"), version=version)
    taken: list[Delivery] = []
    broker.consume("q", taken.append, prefetch=1)
    broker.publish("", "q", b"rejected")
    broker.publish("", "q", b"next")
    broker.publish("", "q", b"expired", properties=Properties(expiration="0"))

    broker.reject(taken[0], requeue=False)

    assert [delivery.body for delivery in taken] == [b"rejected", b"next"]
    assert bodies(broker, "work") == [b"rejected", b"expired"]


def test_a_second_death_of_the_same_kind_is_counted() -> None:
    """One entry for a queue and a reason."""
    broker = broker_with(Queue("q", Settings(dead_letter_exchange="")))
    broker.publish("", "q")
    for _ in range(3):
        delivery = broker.get("q")
        assert delivery is not None
        broker.reject(delivery, requeue=False)

    assert [death["count"] for death in _headers(broker, "q")["x-death"]] == [3]


def test_the_first_death_stays_the_first_however_often_it_is_repeated() -> None:
    """In x-death it moves to the front with every repetition; x-first-death stays, x-last-death goes on."""
    broker = broker_with(
        Queue("a", Settings(dead_letter_exchange="", dead_letter_key="b")),
        Queue("b", Settings(dead_letter_exchange="", dead_letter_key="a")),
    )
    broker.publish("", "a")
    for queue in "aba":
        delivery = broker.get(queue)
        assert delivery is not None
        broker.reject(delivery, requeue=False)

    headers = _headers(broker, "b")

    assert [(death["queue"], death["count"]) for death in headers["x-death"]] == [("a", 2), ("b", 1)]
    assert (headers["x-first-death-queue"], headers["x-last-death-queue"]) == ("a", "a")


def test_a_message_keeps_its_key_unless_the_queue_has_one_for_the_dead() -> None:
    """x-dead-letter-routing-key overwrites it."""
    own = Queue("own", Settings(ttl=Duration(1), dead_letter_exchange="exit"))
    given = Queue("given", Settings(ttl=Duration(1), dead_letter_exchange="exit", dead_letter_key="dead"))
    broker = broker_with(Exchange("exit", "fanout"), own, given, Queue("work"), Binding("exit", "queue", "work"))
    for queue in ("own", "given"):
        broker.publish("", queue)
    broker.clock.run()

    assert [delivery.key for delivery in broker.peek("work")] == ["own", "dead"]


def test_nobody_sees_the_keys_of_bcc_and_they_count_all_the_same() -> None:
    """They lead to queues, also after a death; neither the message nor x-death tells of them."""
    wait = Queue("wait", Settings(ttl=Duration(1), dead_letter_exchange="exit"))
    bindings = [Binding("exit", "queue", "work", key) for key in ("c", "b")]
    broker = broker_with(Exchange("exit", "direct"), wait, Queue("work"), *bindings)

    publication = broker.publish("", "wait", headers={"CC": ["c"], "BCC": ["b"]})
    broker.clock.run()

    assert (publication.queues, broker.count("work").ready) == (("wait",), 1)
    headers = _headers(broker, "work")
    assert (headers["CC"], headers.get("BCC"), headers["x-death"][0]["routing-keys"]) == (["c"], None, ["wait", "c"])


def test_what_has_no_route_is_gone() -> None:
    """The log shows that it went to no queue."""
    broker = broker_with(Queue("wait", Settings(ttl=Duration(5), dead_letter_exchange="missing")))
    broker.publish("", "wait")
    broker.clock.run()

    assert broker.log == [
        (0, Published(1, "", "wait", ("wait",))),
        (5, DeadLettered(1, "wait", "expired", "missing", "wait", ())),
    ]


def test_what_goes_round_by_itself_is_dropped() -> None:
    """On the threshold of the queue that it died in before."""
    broker = broker_with(delay("a", 10, to="b"), delay("b", 10, to="a"))
    broker.publish("", "a")
    broker.clock.run()

    assert broker.log[-2:] == [
        (20, Dropped(1, "a", "circle")),
        (20, DeadLettered(1, "b", "expired", "", "a", ())),
    ]


def test_what_somebody_rejected_on_its_round_goes_on() -> None:
    """A retry with a delay: rejected from the work queue, it waits and comes back, as often as it is rejected."""
    work = Queue("work", Settings(dead_letter_exchange="", dead_letter_key="wait"))
    broker = broker_with(work, delay("wait", 30_000))
    times: list[int] = []

    def fail(delivery: Any) -> None:
        times.append(broker.clock.now)
        if len(times) < 4:
            broker.reject(delivery, requeue=False)
        else:
            broker.ack(delivery)

    broker.consume("work", fail)
    broker.publish("", "work")
    broker.clock.run()

    assert times == [0, 30_000, 60_000, 90_000]


@pytest.mark.parametrize(("version", "is_dropped"), [("3.10", False), ("4.3", True)])
def test_after_a_rejection_old_brokers_let_a_message_go_round_for_ever(version: str, is_dropped: bool) -> None:
    """They turn x-death around with every death, and so find the rejection in every round; new ones look at the last."""
    broker = broker_with(delay("a", 10, to="b"), delay("b", 10, to="a"), version=version)
    broker.publish("", "a")
    delivery = broker.get("a")
    assert delivery is not None
    broker.reject(delivery, requeue=False)
    broker.clock.run_until(1_000)

    assert (broker.count("a").ready + broker.count("b").ready == 0) is is_dropped


def test_a_round_that_takes_no_time_is_an_error_and_not_an_endless_loop() -> None:
    """An old broker is busy with it until somebody deletes a queue."""
    broker = broker_with(delay("a", 0, to="b"), delay("b", 0, to="a"), delay("c", None, to="a"), version="3.10")
    broker.publish("", "c")
    delivery = broker.get("c")
    assert delivery is not None

    with pytest.raises(DelayctlError, match="goes round for ever"):
        broker.reject(delivery, requeue=False)


def test_a_round_in_which_messages_multiply_is_an_error_too() -> None:
    """Each of three queues leads to both others: each time round there are twice as many."""
    exit = Settings(ttl=Duration(0), dead_letter_exchange="exit")
    broker = broker_with(
        Exchange("exit", "fanout"),
        *(Queue(name, exit) for name in "abd"),
        *(Binding("exit", "queue", name, "") for name in "abd"),
        delay("c", None, to="a"),
        version="3.10",
    )
    broker.publish("", "c")
    delivery = broker.get("c")
    assert delivery is not None

    with pytest.raises(DelayctlError, match="goes round for ever"):
        broker.reject(delivery, requeue=False)


def test_old_brokers_believe_an_x_death_that_was_published() -> None:
    """A retry that copies all headers may be dropped as a circle; new brokers don't look at it."""
    found = {}
    for version in ("3.10", "4.3"):
        broker = broker_with(delay("wait", 1), Queue("work"), version=version)
        broker.publish("", "wait", headers={"x-death": [{"queue": "work", "reason": "expired", "count": 1}]})
        broker.clock.run()
        found[version] = broker.count("work").ready

    assert found == {"3.10": 0, "4.3": 1}


def _at_least_once(limit: int | None = None) -> Queue:
    settings = Settings(
        type="quorum",
        ttl=Duration(10),
        max_length=limit,
        overflow="reject-publish",
        dead_letter_exchange="exit",
        dead_letter_strategy="at-least-once",
    )
    return Queue("safe", settings)


def test_at_least_once_keeps_what_has_no_route_and_tries_again() -> None:
    """Every three minutes; once there is a way, it leaves."""
    broker = broker_with(Exchange("exit", "fanout"), _at_least_once(), Queue("work"))
    broker.publish("", "safe")
    broker.clock.advance(100)
    kept = broker.count("safe")
    broker.bind(Binding("exit", "queue", "work"))
    broker.clock.run()

    assert kept == (0, 0, 1)
    assert broker.log == [
        (0, Published(1, "", "safe", ("safe",))),
        (10, Kept(1, "safe")),
        (180_010, DeadLettered(1, "safe", "expired", "exit", "safe", ("work",))),
    ]
    assert broker.count("safe") == (0, 0, 0)


def test_at_least_once_keeps_what_the_target_refuses() -> None:
    """Until there is room, and the three minutes are over."""
    full = Queue("work", Settings(max_length=1, overflow="reject-publish"))
    broker = broker_with(Exchange("exit", "fanout"), _at_least_once(), full, Binding("exit", "queue", "work"))
    for body in (b"1", b"2"):
        broker.publish("", "safe", body)
    broker.clock.advance(100)
    before = (bodies(broker, "work"), broker.count("safe").leaving)
    broker.purge("work")
    broker.clock.run_until(200_000)

    assert (before, bodies(broker, "work"), broker.count("safe").leaving) == (([b"1"], 1), [b"2"], 0)


def test_at_least_once_what_can_not_leave_takes_room() -> None:
    """Messages and bytes: a queue may be full of what is stuck."""
    broker = broker_with(Exchange("exit", "fanout"), _at_least_once(limit=1))
    answers = []
    for _ in range(4):
        answers.append(broker.publish("", "safe").is_nacked)
        broker.clock.advance(100)

    assert (answers, broker.count("safe")) == ([False, False, True, True], (0, 0, 2))


def test_at_least_once_a_queue_that_is_full_does_not_open_for_what_is_about_to_be_stuck() -> None:
    """Ten bytes at a time into twenty-five: the third is one too many, ready or stuck."""
    settings = replace(_at_least_once().settings, max_bytes=25)
    broker = broker_with(Exchange("exit", "fanout"), Queue("safe", settings), version="3.10")
    answers = []
    for _ in range(5):
        answers.append(broker.publish("", "safe", b"x" * 10).is_nacked)
        broker.clock.advance(100)

    assert answers == [False, False, False, True, True]


def test_new_brokers_purge_also_what_can_not_leave() -> None:
    """On old ones it stays, and so does the room that it takes."""
    found = {}
    for version in ("3.10", "4.3"):
        broker = broker_with(Exchange("exit", "fanout"), _at_least_once(), version=version)
        broker.publish("", "safe")
        broker.clock.advance(100)
        found[version] = (broker.purge("safe"), broker.count("safe").leaving)

    assert found == {"3.10": (0, 1), "4.3": (1, 0)}


def test_at_least_once_thirty_two_without_a_way_block_all_others() -> None:
    """The thirty-third has a route, and waits all the same."""
    targets = (Exchange("exit", "direct"), Queue("work"), Binding("exit", "queue", "work", "good"))
    broker = broker_with(*targets, _at_least_once(), Exchange("in", "fanout"), Binding("in", "queue", "safe"))
    for number in range(31):
        broker.publish("in", f"bad{number}")
    broker.publish("in", "good", b"1")
    broker.publish("in", "bad")
    broker.publish("in", "good", b"2")
    broker.clock.advance(1_000)

    assert (bodies(broker, "work"), broker.count("safe").leaving) == ([b"1"], 33)
