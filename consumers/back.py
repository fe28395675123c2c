"""Waiting until a queue has back what was given back to it. Pure: the queue and the clock are given."""

from collections.abc import Callable

_NO_MORE_AFTER_S = 2.0


def await_back(held: int, ready: Callable[[], int], rest: Callable[[], object], clock: Callable[[], float]) -> None:
    """Return when so many are ready again, or when no more have come for a while: some may have expired, or been taken.

    A broker may take half a minute to put a hundred thousand back, and whoever asks meanwhile sees only some of them.
    """
    most, until = -1, clock()
    while (found := ready()) < held:
        if found > most:
            most, until = found, clock() + _NO_MORE_AFTER_S
        elif clock() >= until:
            return
        rest()
