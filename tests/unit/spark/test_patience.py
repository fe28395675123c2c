"""How long a task goes on trying while queues are full."""

from delayctl.spark.patience import Patience


def test_one_queue_says_nothing_of_another() -> None:
    """What others take does not make the time of one that is full begin anew."""
    patience = Patience(60)

    early = patience.is_over("full", 0)
    patience.took("other", has_waited=True)

    assert (early, patience.is_over("full", 61)) == (False, True)


def test_a_queue_that_takes_what_it_refused_is_waited_for_anew() -> None:
    """It empties slowly, and everything finds room in the end."""
    patience = Patience(60)
    patience.is_over("slow", 0)

    patience.took("slow", has_waited=True)

    assert (patience.is_over("slow", 61), patience.is_over("slow", 122)) == (False, True)


def test_a_new_message_that_is_taken_does_not_make_the_time_begin_anew() -> None:
    """It may have gone to another shard of the same level."""
    patience = Patience(60)
    patience.is_over("level", 0)

    patience.took("level", has_waited=False)

    assert patience.is_over("level", 61)


def test_what_nobody_waits_for_is_forgotten() -> None:
    """A message that was refused may go elsewhere the next time: a refusal much later is the first one again."""
    patience = Patience(60)
    patience.is_over("left", 0)

    patience.wait_for({"other"})

    assert not patience.is_over("left", 61)


def test_a_queue_that_was_given_up_is_given_up_until_it_has_taken_many() -> None:
    """Not for every block anew, nor because another shard took something in between."""
    patience = Patience(60)
    patience.is_over("full", 0)
    patience.is_over("full", 61)
    patience.wait_for(())

    for _ in range(99):
        patience.took("full", has_waited=False)
    still = patience.is_over("full", 62)
    for _ in range(100):
        patience.took("full", has_waited=False)

    assert (still, patience.is_over("full", 63)) == (True, False)


def test_when_many_are_given_up_none_is_waited_for() -> None:
    """Where each message has a routing key of its own, one full queue looks like many."""
    patience = Patience(60)
    for second in (0, 61):
        for number in range(100):
            patience.is_over(number, second)

    assert patience.is_over("new", 62)
