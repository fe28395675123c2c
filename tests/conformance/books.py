"""The accounts of a stage: all that was sent and seen, and whether anything is still owed."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from tests.conformance.stage import Answer, Attempt, Group, RetryAt


class Books:
    """Kept by every stage while its groups are at work; handlers may run in threads."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = {group.name: group for group in groups}
        self.attempts: list[Attempt] = []
        self._sends: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._writing = threading.Lock()

    def sent(self, topic: str) -> None:
        """Note that a message was sent."""
        self._sends[topic] += 1

    def handle(self, attempt: Attempt) -> Answer | RetryAt:
        """Note an attempt, and let the group's handler answer."""
        with self._writing:
            self.attempts.append(attempt)
            answer = self.groups[attempt.group].handler(attempt)
            self._failures[attempt.group] += answer is not Answer.DONE
            return answer

    def is_settled(self, dead: Callable[[str], int]) -> bool:
        """Whether each message was tried, and each failure was followed by a retry or by a dead letter."""
        return all(self._is_settled(group, dead) for group in self.groups.values())

    def _is_settled(self, group: Group, dead: Callable[[str], int]) -> bool:
        with self._writing:
            tried = Counter(attempt.attempt > 0 for attempt in self.attempts if attempt.group == group.name)
            failed = self._failures[group.name]
        if tried[False] < self._sends[group.topic] or tried[True] > failed:
            return False
        return tried[True] == failed or tried[True] + dead(group.name) >= failed
