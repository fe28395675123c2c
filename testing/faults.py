"""What a test has the simulated broker do to its clients."""

from collections.abc import Callable

Answer = Callable[[], None]


class Faults:
    """The switches that clients feel; used with the lock held."""

    def __init__(self) -> None:
        self.blocked_for: str | None = None  # The reason for which no messages are taken.
        self.is_holding_answers = False
        self.refusals_left = 0
        self._held: list[Answer] = []

    @property
    def held(self) -> int:
        """How many answers are held back."""
        return len(self._held)

    def refuses_this(self) -> bool:
        """Say whether the message that has just come is refused."""
        if self.refusals_left == 0:
            return False
        self.refusals_left -= 1
        return True

    def answer(self, answer: Answer) -> None:
        """Give an answer to a publish, or hold it back."""
        if self.is_holding_answers:
            self._held.append(answer)
        else:
            answer()

    def release_answers(self) -> None:
        """Give what was held back."""
        self.is_holding_answers = False
        held, self._held = self._held, []
        for answer in held:
            answer()
