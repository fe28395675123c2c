"""What delayed and retried messages do on every broker, each behaviour stated once."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from tests.conformance.stage import Ability, Answer, Attempt, DeadLetter, Group, RetryAt, Theatre

DONE, RETRY, PARK, RAISE = Answer.DONE, Answer.RETRY, Answer.PARK, Answer.RAISE
FIRST_RETRY_LEVEL = 3


@dataclass(frozen=True)
class Behaviour:
    """Something that must be so; `needs` is an ability without which it can't be asked."""

    check: Callable[[Theatre], None]
    needs: Ability | None

    @property
    def name(self) -> str:
        """What is claimed."""
        return self.check.__name__.replace("_", " ")


BEHAVIOURS: list[Behaviour] = []


def behaviour(*, needs: Ability | None = None) -> Callable[[Callable[[Theatre], None]], Callable[[Theatre], None]]:
    """Add a function to the behaviours."""

    def add(check: Callable[[Theatre], None]) -> Callable[[Theatre], None]:
        BEHAVIOURS.append(Behaviour(check, needs))
        return check

    return add


def _done(_: Attempt) -> Answer:
    return DONE


def _retry(_: Attempt) -> Answer:
    return RETRY


def _once(answer: Answer | RetryAt) -> Callable[[Attempt], Answer | RetryAt]:
    """Fail at first and then no more."""
    return lambda attempt: DONE if attempt.attempt else answer


@behaviour()
def a_message_comes_after_its_level_and_not_before(theatre: Theatre) -> None:
    """For every level: never early, and late by no more than the broker may be."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        sent = {level: stage.send("orders", f"level {level}", level=level) for level in range(1, 19)}
        stage.rest()

    came = {attempt.level: attempt for attempt in stage.attempts}
    assert sorted(came) == list(range(1, 19))
    assert len(stage.attempts) == 18
    for level, attempt in came.items():
        assert attempt.body == f"level {level}"
        late = attempt.time - sent[level].time - theatre.levels_ms[level - 1]
        assert 0 <= late <= theatre.late_ms, f"level {level} came {late} ms after its time"


@behaviour()
def messages_of_a_level_keep_their_order(theatre: Theatre) -> None:
    """First in, first out."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        for number in range(30):
            stage.send("orders", str(number), level=2)
        stage.rest()

    assert [attempt.body for attempt in stage.attempts] == [str(number) for number in range(30)]


@behaviour()
def levels_do_not_block_one_another(theatre: Theatre) -> None:
    """What waits shorter comes first, though it was sent last."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        for level in (18, 2, 1):
            stage.send("orders", f"level {level}", level=level)
        stage.rest()

    assert [attempt.body for attempt in stage.attempts] == ["level 1", "level 2", "level 18"]


@behaviour()
def a_level_above_the_last_is_the_last(theatre: Theatre) -> None:
    """It waits as long as the longest level does."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        sent = stage.send("orders", "far", level=99)
        stage.rest()

    (attempt,) = stage.attempts
    assert attempt.level == len(theatre.levels_ms)
    assert 0 <= attempt.time - sent.time - theatre.levels_ms[-1] <= theatre.late_ms


@behaviour()
def level_0_is_at_once(theatre: Theatre) -> None:
    """It overtakes what waits the shortest level."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        stage.send("orders", "later", level=3)
        sent = stage.send("orders", "now", level=0)
        stage.rest()

    first, second = stage.attempts
    assert (first.body, first.level, second.body) == ("now", 0, "later")
    assert 0 <= first.time - sent.time <= theatre.late_ms


@behaviour()
def seventeen_attempts_and_then_the_dead_letter_queue(theatre: Theatre) -> None:
    """After attempt n, counted from 0, it waits level 3 + n; the seventeenth failure is the last."""
    with theatre.open(Group("g", "orders", _retry)) as stage:
        sent = stage.send("orders", "hopeless")
        stage.rest()
        dead = stage.dead_letters("g")

    assert [attempt.attempt for attempt in stage.attempts] == list(range(17))
    assert [attempt.level for attempt in stage.attempts] == [0, *range(FIRST_RETRY_LEVEL, 19)]
    for before, after in pairwise(stage.attempts):
        late = after.time - before.time - theatre.levels_ms[after.level - 1]
        assert 0 <= late <= theatre.late_ms, f"attempt {after.attempt} came {late} ms after its time"
    assert dead == [DeadLetter("hopeless", sent.message_id)]


@behaviour()
def a_retry_looks_like_the_first_attempt(theatre: Theatre) -> None:
    """Topic, body and id are the same, only the count differs, whatever level it was sent with."""
    with theatre.open(Group("g", "orders", _retry, max_retries=2)) as stage:
        sent = stage.send("orders", "zwölf 12 ✓", level=1)
        stage.rest()
        dead = stage.dead_letters("g")

    seen = [(a.group, a.topic, a.body, a.message_id, a.attempt) for a in stage.attempts]
    assert seen == [("g", "orders", "zwölf 12 ✓", sent.message_id, attempt) for attempt in range(3)]
    assert dead == [DeadLetter("zwölf 12 ✓", sent.message_id)]


@behaviour()
def fewer_retries_than_sixteen(theatre: Theatre) -> None:
    """A group that wants 3 gets 3, and one more attempt than that."""
    with theatre.open(Group("g", "orders", _retry, max_retries=3)) as stage:
        stage.send("orders", "hopeless")
        stage.rest()
        dead = stage.dead_letters("g")

    assert [(attempt.attempt, attempt.level) for attempt in stage.attempts] == [(0, 0), (1, 3), (2, 4), (3, 5)]
    assert [letter.body for letter in dead] == ["hopeless"]


@behaviour()
def a_handler_may_choose_the_level(theatre: Theatre) -> None:
    """The count goes on, and the next retry without a choice follows it."""

    def choose(attempt: Attempt) -> Answer | RetryAt:
        return (RetryAt(2), RETRY, DONE)[attempt.attempt]

    with theatre.open(Group("g", "orders", choose)) as stage:
        stage.send("orders", "patience")
        stage.rest()
        dead = stage.dead_letters("g")

    assert [(attempt.attempt, attempt.level) for attempt in stage.attempts] == [(0, 0), (1, 2), (2, 4)]
    first, second = stage.attempts[:2]
    assert 0 <= second.time - first.time - theatre.levels_ms[1] <= theatre.late_ms
    assert dead == []


@behaviour(needs=Ability.NUMBERED_LEVELS)
def a_chosen_level_above_the_last_is_the_last(theatre: Theatre) -> None:
    """As it is for a message that is sent."""
    with theatre.open(Group("g", "orders", _once(RetryAt(99)))) as stage:
        stage.send("orders", "far")
        stage.rest()

    assert [(attempt.attempt, attempt.level) for attempt in stage.attempts] == [(0, 0), (1, 18)]


@behaviour()
def a_handler_may_give_up_at_once(theatre: Theatre) -> None:
    """Straight to the dead-letter queue."""
    with theatre.open(Group("g", "orders", lambda _: PARK)) as stage:
        sent = stage.send("orders", "broken", level=1)
        stage.rest()
        dead = stage.dead_letters("g")

    assert [(attempt.attempt, attempt.level) for attempt in stage.attempts] == [(0, 1)]
    assert dead == [DeadLetter("broken", sent.message_id)]


@behaviour()
def an_exception_is_a_retry(theatre: Theatre) -> None:
    """A handler that fails unforeseen loses nothing."""
    with theatre.open(Group("g", "orders", _once(RAISE))) as stage:
        stage.send("orders", "bad luck")
        stage.rest()
        dead = stage.dead_letters("g")

    assert [(attempt.attempt, attempt.level) for attempt in stage.attempts] == [(0, 0), (1, 3)]
    assert dead == []


@behaviour()
def what_is_done_does_not_come_again(theatre: Theatre) -> None:
    """Of many messages, some of which fail once, each is seen as often as it must be."""
    with theatre.open(Group("g", "orders", lambda a: RETRY if a.body in "357" and not a.attempt else DONE)) as stage:
        for number in range(10):
            stage.send("orders", str(number), level=number % 3)
        stage.rest()

    seen = sorted((attempt.body, attempt.attempt) for attempt in stage.attempts)
    assert seen == sorted([*((str(number), 0) for number in range(10)), *((number, 1) for number in "357")])


@behaviour()
def another_group_is_not_disturbed(theatre: Theatre) -> None:
    """A retry, and the giving up, are the business of the group that failed."""
    with theatre.open(Group("g", "orders", _retry, max_retries=2), Group("calm", "orders", _done)) as stage:
        stage.send("orders", "hopeless", level=1)
        stage.rest()
        dead = [[letter.body for letter in stage.dead_letters(group)] for group in ("g", "calm")]

    assert [attempt.attempt for attempt in stage.attempts if attempt.group == "g"] == [0, 1, 2]
    assert [attempt.attempt for attempt in stage.attempts if attempt.group == "calm"] == [0]
    assert dead == [["hopeless"], []]


@behaviour()
def another_topic_is_not_disturbed(theatre: Theatre) -> None:
    """Two topics share the levels and nothing else."""
    with theatre.open(Group("g", "orders", _done), Group("h", "stores", _done)) as stage:
        stage.send("orders", "an order", level=1)
        stage.send("stores", "a store", level=1)
        stage.rest()

    assert sorted((a.group, a.topic, a.body) for a in stage.attempts) == [
        ("g", "orders", "an order"),
        ("h", "stores", "a store"),
    ]


@behaviour(needs=Ability.BOUNDED_LEVELS)
def what_is_too_much_for_a_level_is_early_and_not_lost(theatre: Theatre) -> None:
    """The oldest make room."""
    with theatre.open(Group("g", "orders", _done), max_length=2) as stage:
        sent = [stage.send("orders", str(number), level=18) for number in range(5)]
        stage.rest()

    assert [attempt.body for attempt in stage.attempts] == ["0", "1", "2", "3", "4"]
    waited = [attempt.time - each.time for attempt, each in zip(stage.attempts, sent, strict=True)]
    assert [wait >= theatre.levels_ms[17] for wait in waited] == [False, False, False, True, True]


@behaviour()
def a_message_seen_twice_has_the_same_id(theatre: Theatre) -> None:
    """Delivery is at least once, and this is how a handler knows."""
    with theatre.open(Group("g", "orders", _done)) as stage:
        sent = stage.send_seen_twice("orders", "again")
        stage.rest()

    assert {(a.body, a.message_id, a.attempt) for a in stage.attempts} == {("again", sent.message_id, 0)}
    assert len(stage.attempts) == 2


@behaviour(needs=Ability.RESTART)
def what_waits_outlives_the_broker(theatre: Theatre) -> None:
    """Nothing is lost, nothing is early; what fell due meanwhile comes when the broker is back."""
    with theatre.open(Group("g", "orders", _once(RETRY))) as stage:
        sent = {body: stage.send("orders", body, level=18) for body in ("a", "b", "c")}
        stage.restart()
        stage.rest()

    assert [(a.body, a.level) for a in stage.attempts if not a.attempt] == [("a", 18), ("b", 18), ("c", 18)]
    assert sorted((a.body, a.level) for a in stage.attempts if a.attempt) == [("a", 3), ("b", 3), ("c", 3)]
    for attempt in stage.attempts[:3]:
        assert attempt.time - sent[attempt.body].time >= theatre.levels_ms[17]
