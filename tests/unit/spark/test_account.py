"""Accounts add up, or say that they do not."""

import pytest
from delayctl.spark.account import Account, DoesNotAddUp, total

WHOLE = Account(rows=21, confirmed=6, returned=5, nacked=4, rejected=3, later=2, skipped=1)


def test_accounts_are_summed_up_count_by_count() -> None:
    """Every count of the sum is the sum of that count."""
    other = Account(rows=2, confirmed=2)

    assert total([WHOLE, other]) == Account(rows=23, confirmed=8, returned=5, nacked=4, rejected=3, later=2, skipped=1)


def test_no_account_is_an_empty_one() -> None:
    """A write without tasks has nothing to account for."""
    assert total([]) == Account()


def test_sent_and_refused_are_derived() -> None:
    """What the broker was given, and what nobody will get."""
    assert (WHOLE.sent, WHOLE.refused) == (15, 12)


@pytest.mark.parametrize("count", ["confirmed", "returned", "nacked", "rejected", "later", "skipped"])
def test_every_row_stands_in_one_count(count: str) -> None:
    """A row that is in any of the counts is accounted for."""
    assert Account(rows=1, **{count: 1}).adds_up


@pytest.mark.parametrize("account", [Account(rows=2, confirmed=1), Account(rows=1, confirmed=1, rejected=1)])
def test_a_row_too_few_or_too_many_is_an_error(account: Account) -> None:
    """Neither a row that is nowhere nor one that is counted twice goes unseen."""
    with pytest.raises(DoesNotAddUp):
        total([WHOLE, account])


def test_an_account_that_does_not_add_up_is_told_whole() -> None:
    """The error has the counts in it, and says what to do."""
    with pytest.raises(DoesNotAddUp) as caught:
        total([Account(rows=1200, confirmed=1100, skipped=99)])

    assert str(caught.value) == (
        "Error: the account does not add up: 1,200 rows: 1,100 confirmed, 99 skipped\n"
        "  fix: this is a bug, please report it; until then run the job again: messages keep their ids"
    )


def test_an_account_without_rows_says_so() -> None:
    """Nothing to do is said plainly."""
    assert str(Account()) == "0 rows: nothing to do"
