"""How long it is tried to connect again: with growing pauses, and up to an end, until the broker answers."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class Patience:
    """Lasts over all connections that break before the broker has answered anything. Is told the time."""

    def __init__(self, give_up_after_s: float) -> None:
        self._give_up_after_s = give_up_after_s
        self._give_up = 0.0
        self._pause_s = 0.0

    def restore(self, now: float) -> None:
        """All was well until now: the first attempt needs no pause."""
        self._pause_s = 0.0
        self.extend(now)

    def extend(self, now: float) -> None:
        """What waits has waited since now; the pauses stay as they are."""
        self._give_up = now + self._give_up_after_s

    def is_over(self, now: float) -> bool:
        """Whether it took too long, which it never has before the first attempt."""
        return self._pause_s > 0 and now > self._give_up

    def next_pause_s(self) -> float:
        """How long to wait before the next attempt."""
        pause, self._pause_s = self._pause_s, min(max(self._pause_s * 2, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        return pause
