"""How long it is tried to connect again."""

from delayctl.publishers.patience import Patience


def well(give_up_after_s: float = 60) -> Patience:
    """At the first loss, at second 100."""
    patience = Patience(give_up_after_s)
    patience.restore(100)
    return patience


def test_the_first_attempt_needs_no_pause() -> None:
    """The others wait longer and longer."""
    patience = well()

    assert [patience.next_pause_s() for _ in range(9)] == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


def test_it_is_over_after_a_while() -> None:
    """Though not before anything was tried."""
    patience = well(give_up_after_s=0)
    assert not patience.is_over(101)

    patience.next_pause_s()

    assert patience.is_over(101)


def test_what_comes_later_has_its_own_time() -> None:
    """Pauses stay long: nothing was answered."""
    patience = well()
    patience.next_pause_s()

    patience.extend(150)

    assert (patience.is_over(200), patience.is_over(211)) == (False, True)
    assert patience.next_pause_s() == 0.1
