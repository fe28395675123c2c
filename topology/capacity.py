"""How many messages wait, what room they need, and what a given room carries. Pure arithmetic."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from delayctl.topology.duration import Duration
from delayctl.topology.footprint import Footprint, Shape
from delayctl.topology.rate import Rate

HEADROOM = Fraction(1, 10)
_FEWEST_SHOWN = 10


def waiting(rate: Rate, delay: Duration) -> int:
    """How many wait when so many come all the time, and each stays so long."""
    return ceil(rate.per_second * delay.ms / 1000)


def round_up(needed: Fraction) -> int:
    """A tenth more than is needed, in two digits."""
    wanted = int(needed * (1 + HEADROOM)) + 1
    step = int("1".ljust(max(len(str(wanted)) - 1, 1), "0"))
    return -(-wanted // step) * step


def holds(limit: int, ttl: Duration) -> Rate:
    """The even rate at which a queue is full and nothing leaves early, rounded down to digits that can be read."""
    per_second = Fraction(limit * 1000, max(ttl.ms, 1))
    for seconds in (1, 60, 3600, 86400):
        if per_second * seconds >= _FEWEST_SHOWN:
            return Rate(Fraction(int(per_second * seconds), seconds))
    return Rate(per_second)


@dataclass(frozen=True, slots=True)
class Need:
    """One wait: how long, how many come, what is allowed to wait, and what a message takes. None is not known."""

    name: str
    shape: Shape
    footprint: Footprint
    delay: Duration | None = None
    rate: Rate | None = None
    max_length: int | None = None
    max_bytes: int | None = None
    body: int | None = None
    rejects: bool = False  # When it is full; otherwise the oldest leaves early.

    @property
    def waiting(self) -> int | None:
        """How many wait, once as many leave as come."""
        return waiting(self.rate, self.delay) if self.rate and self.delay else None

    @property
    def advised(self) -> int | None:
        """The max_length for that, with headroom."""
        return None if self.waiting is None else round_up(Fraction(self.waiting))

    @property
    def limit(self) -> int | None:
        """How many may wait, by whichever of the given limits is tighter."""
        by_bytes = None if self.max_bytes is None or not self.body else self.max_bytes // self.body
        return min((limit for limit in (self.max_length, by_bytes) if limit is not None), default=None)

    @property
    def room(self) -> int | None:
        """How many wait when it is full: the given limit, else the advised one."""
        return self.advised if self.limit is None else self.limit

    @property
    def carries(self) -> Rate | None:
        """The even rate that there is room for."""
        return holds(self.room, self.delay) if self.room and self.delay and self.delay.ms else None

    @property
    def memory_each(self) -> int:
        """Bytes of memory per message, bodies included where they are kept there."""
        return self.footprint.memory_of(self.body or 0)

    @property
    def disk_each(self) -> int:
        """Bytes of disk per message, bodies included as far as their size is known."""
        return self.footprint.disk_of(self.body or 0)

    @property
    def memory(self) -> int:
        """Bytes of memory when it is full."""
        return (self.room or 0) * self.memory_each

    @property
    def disk(self) -> int:
        """Bytes of disk when it is full."""
        return (self.room or 0) * self.disk_each

    @property
    def log(self) -> int:
        """Bytes of memory that it would take in a log without an end, when it is full."""
        return (self.room or 0) * self.footprint.log_of(self.body or 0)

    @property
    def is_short(self) -> bool:
        """Say whether more come than may wait."""
        return self.waiting is not None and self.limit is not None and self.waiting > self.limit


@dataclass(frozen=True, slots=True)
class Available:
    """What messages may take, in bytes, and who says so; None is not known."""

    memory: int | None = None
    disk: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What does not fit, and what would mend it."""

    what: str
    fix: str


@dataclass(frozen=True)
class Capacity:
    """All waits together, beside what there is."""

    needs: tuple[Need, ...]
    available: Available = Available()

    @property
    def log(self) -> int:
        """Bytes of memory that the log of quorum queues takes on top: they share it, and it has an end."""
        most = max((need.footprint.log_most for need in self.needs), default=0)
        return min(sum(need.log for need in self.needs), most)

    @property
    def memory(self) -> int:
        """Bytes of memory when all are full."""
        return sum(need.memory for need in self.needs) + self.log

    @property
    def disk(self) -> int:
        """Bytes of disk when all are full."""
        return sum(need.disk for need in self.needs)

    @property
    def shortfalls(self) -> tuple[Shortfall, ...]:
        """All that does not fit."""
        return (*self._short_waits(), *self._short_node())

    @property
    def fits(self) -> bool:
        """Say whether all does."""
        return not self.shortfalls

    def most_messages(self, need: Need) -> int | None:
        """How many messages like these there is memory for; None where it is not known how much there is."""
        if self.available.memory is None:
            return None
        return messages_in(self.available.memory, need)

    def _short_waits(self) -> Iterator[Shortfall]:
        for need in self.needs:
            if need.is_short and need.waiting is not None and need.limit is not None:
                fate = "the rest is refused" if need.rejects else "the oldest leave early"
                what = f"{need.name}: {need.waiting:,} would wait, and there is room for {need.limit:,}: {fate}"
                yield Shortfall(what, f"set max_length: {need.advised}{_and_bytes(need)}")

    def _short_node(self) -> Iterator[Shortfall]:
        has = self.available
        for name, wanted, left in (("memory", self.memory, has.memory), ("disk", self.disk, has.disk)):
            if left is None:
                continue
            if (dearest := max((_each(name, need) for need in self.needs), default=0)) > left:
                what = f"one takes {dearest:,} B of {name}, and there is {left:,} B ({has.source})"
                yield Shortfall(f"there is room for no message: {what}", f"add {name}")
            elif wanted > left and any(need.room for need in self.needs):
                what = f"when full, what waits takes {wanted:,} bytes of {name}, and there are {left:,} ({has.source})"
                yield Shortfall(what, f"let no more than {self._most(name, left):,} wait{self._where}, or add {name}")

    def _most(self, name: str, left: int) -> int:
        if name == "disk":
            return min(left // need.disk_each for need in self.needs)
        return min(messages_in(left, need) for need in self.needs)

    @property
    def _where(self) -> str:
        return " in all levels together" if len(self.needs) > 1 else " (max_length)"


def _each(name: str, need: Need) -> int:
    """What the first message takes of memory, where it is in the log as well, or of disk."""
    return need.disk_each if name == "disk" else need.memory_each + need.footprint.log_of(need.body or 0)


def messages_in(memory: int, need: Need) -> int:
    """How many messages like these there is room for in so many bytes of memory, their log included."""
    in_log, most = need.footprint.log_of(need.body or 0), need.footprint.log_most
    with_log = memory // (need.memory_each + in_log)
    return with_log if with_log * in_log <= most else (memory - most) // need.memory_each


def _and_bytes(need: Need) -> str:
    if need.max_bytes is None or need.advised is None or not need.body:
        return ""
    return f", max_bytes: {need.advised * need.body}"
