"""What is kept of a run: how values are spread over messages, and how a length went over time."""

from collections import Counter

MOST_POINTS = 1_200


class Spread:
    """Values and how many messages had each."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, value: int, count: int) -> None:
        """Count so many messages with this value."""
        self._counts[value] += count

    @property
    def total(self) -> int:
        """How many messages there are."""
        return self._counts.total()

    def percentile(self, percent: int) -> int | None:
        """The smallest value that this many percent of the messages do not exceed; None where there are none."""
        total, seen = self.total, 0
        for value in sorted(self._counts):
            seen += self._counts[value]
            if seen * 100 >= total * percent:
                return value
        return None

    @property
    def least(self) -> int | None:
        """The smallest value."""
        return min(self._counts, default=None)

    @property
    def median(self) -> int | None:
        """The value in the middle."""
        return self.percentile(50)

    @property
    def most(self) -> int | None:
        """The largest value."""
        return max(self._counts, default=None)

    def above(self, bound: int) -> "Spread":
        """Those with a larger value."""
        found = Spread()
        for value, count in self._counts.items():
            if value > bound:
                found.add(value, count)
        return found


class Series:
    """The most that a length was in each of a few hundred intervals; they grow as time goes on."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.most: list[int] = [0]
        self._last = 0

    def record(self, now: int, length: int) -> None:
        """Note the length from now on; it was the one noted last until now."""
        while now // self.interval >= MOST_POINTS:
            self._halve()
        number, into = divmod(now, self.interval)
        if number >= len(self.most):
            self.most.extend([self._last] * (number - len(self.most)))
            self.most.append(self._last if into else length)
        self.most[number] = max(self.most[number], length)
        self._last = length

    def _halve(self) -> None:
        pairs = zip(self.most[::2], [*self.most[1::2], 0][: len(self.most[::2])], strict=True)
        self.most = [max(pair) for pair in pairs]
        self.interval *= 2
