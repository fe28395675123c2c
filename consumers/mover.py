"""Moves messages from one queue to wherever each belongs: published and confirmed first, then acknowledged.

Killed at any moment, a message is in its old place, or in the new one, or in both for as long as its answer was on the
way: never in none. What is in both has the same id. At most two blocks are on their way at once.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass

from delayctl.consumers.blocks import FIRST, next_size
from delayctl.consumers.homes import Onward, Stays
from delayctl.consumers.inbox import Delivery
from delayctl.consumers.moved import Moved
from delayctl.consumers.pull import Pull
from delayctl.consumers.sighting import is_worn
from delayctl.consumers.uninterrupted import uninterrupted
from delayctl.publishers.choice import Way
from delayctl.publishers.delivery import Delivery as Sent
from delayctl.publishers.errors import NotPublished, TooLarge, Unroutable
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.errors import DelayctlError
from delayctl.topology.rate import Rate

MOST_RETURNS = 10  # Half of what RabbitMQ 4 allows a message of a quorum queue before it gives it up.
BLOCK = 500  # Messages that are asked for and published at once.
_PATIENCE_S = 1.0
_HARMLESS = (Unroutable, TooLarge)  # Speak of one message; all else speaks of the broker, and of the next message too.

Decide = Callable[[Delivery], Onward | Stays]


@dataclass(frozen=True, slots=True)
class _Flying:
    tag: int
    onward: Onward
    answer: Sent
    has_id: bool


class Mover:
    """One run over a queue; without a publisher nothing is sent, and everything stays."""

    def __init__(
        self,
        pull: Pull,
        decide: Decide,
        publisher: DelayPublisher | None,
        *,
        rate: Rate | None = None,
        limit: int | None = None,
        most_returns: int | None = MOST_RETURNS,
        on_progress: Callable[[Moved], object] = lambda _: None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self._pull, self._decide, self._publisher = pull, decide, publisher
        self._rate, self._most_returns = rate, most_returns
        self._on_progress = on_progress
        self._is_over = is_over
        self._flying: deque[list[_Flying]] = deque()
        self._started = time.monotonic()
        self._accepted = 0  # To be sent; the limit is of these.
        self._limit = limit
        self._is_hopeless = False
        self.moved = Moved()

    def run(self, most: int) -> Moved:
        """Look at so many messages and no more: what is put into the queue meanwhile is not looked at.

        Ctrl-C ends the looking, and what is on its way still arrives; once more, and that is left to itself.
        """
        try:
            self._take_all(most)
            self._finish()
        except KeyboardInterrupt:
            self.moved.is_stopped = True
            with suppress(KeyboardInterrupt):
                self._finish()
        return self.moved

    def _finish(self) -> None:
        while self._flying:
            self._settle()
        self._pull.give_back()

    def _take_all(self, most: int) -> None:
        size = FIRST
        while (size := min(size, most, self._most_at_once())) > 0 and not self._must_end():
            block = self._pull.take(size)
            if not block:
                self.moved.withheld = min(most, self._pull.withheld)
                return
            most -= len(block)
            size = next_size(size, block, BLOCK)
            self._flying.append([])
            for delivery in block:
                self._deal_with(delivery)
            if len(self._flying) > (self._rate is None):  # A slow one has time for the answers of each block.
                self._settle()
            self._on_progress(self.moved)

    def _must_end(self) -> bool:
        return self._is_hopeless or self.moved.is_worn or self._is_over()

    def _most_at_once(self) -> int:
        """So few that a slow pace is kept evenly, and that no limit is exceeded should all of them be meant."""
        by_rate = BLOCK if self._rate is None else max(1, int(self._rate.per_second / 10))
        return by_rate if self._limit is None else min(by_rate, self._limit - self._accepted)

    def _deal_with(self, delivery: Delivery) -> None:
        decision = self._decide(delivery)
        self._accepted += isinstance(decision, Onward)
        if isinstance(decision, Onward) and self._publisher is not None:
            self._keep_pace()
            self._publish(delivery, decision, self._publisher)
            return
        self.moved.is_worn |= is_worn(delivery, self._most_returns)
        if isinstance(decision, Stays):
            self.moved.left[decision] += 1
        else:
            self.moved.sent[decision.to] += 1

    def _keep_pace(self) -> None:
        if self._rate is not None:
            due = self._started + float((self._accepted - 1) / self._rate.per_second)
            self._pull.rest(due - time.monotonic())

    def _publish(self, delivery: Delivery, onward: Onward, publisher: DelayPublisher) -> None:
        try:
            with uninterrupted():  # So that nothing is sent, and given back as if it were not.
                self._flying[-1].append(_sent(delivery, onward, publisher))
                self.moved.on_the_way += 1
        except NotPublished:
            raise
        except DelayctlError as error:
            self.moved.failed[Stays(error.what, error.fix or "")] += 1

    def _settle(self) -> None:
        """Wait for the broker's answers to what was sent first, and acknowledge what is safe elsewhere."""
        block = self._flying[0]
        late: set[futures.Future[str]] = {each.answer for each in block}
        while late:
            _, late = futures.wait(late, _PATIENCE_S)
            self._pull.keep_alive()
        with uninterrupted():  # So that each is acknowledged once, and counted once.
            self._pull.acknowledge(each.tag for each in block if each.answer.exception() is None)
            self._flying.popleft()
            self._account_for(block)

    def _account_for(self, block: Sequence[_Flying]) -> None:
        safe = [each for each in block if each.answer.exception() is None]
        self.moved.on_the_way -= len(block)
        self.moved.sent.update(each.onward.to for each in safe)
        self.moved.without_id += sum(not each.has_id for each in safe)
        for each in block:
            if error := each.answer.exception():
                self._note(error)

    def _note(self, error: BaseException) -> None:
        self._is_hopeless = self._is_hopeless or not isinstance(error, _HARMLESS)
        what, fix = (error.what, error.fix) if isinstance(error, NotPublished) else (str(error), None)
        self.moved.failed[Stays(what, fix or "")] += 1


def _sent(delivery: Delivery, onward: Onward, publisher: DelayPublisher) -> _Flying:
    given, way = onward.properties.message_id, Way(onward.exchange)
    answer = publisher.send(delivery.body, way, key=onward.key, message_id=given, properties=onward.properties)
    return _Flying(delivery.tag, onward, answer, given is not None)
