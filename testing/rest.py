"""Waiting for clients: until they have dealt with all they got, or it is clear that they never will."""

import time
from collections.abc import Callable, Set

from delayctl.consumers.treatment import is_in_handler
from delayctl.simulator.rabbitmq_message import Delivery
from delayctl.testing.errors import NotAtRest
from delayctl.testing.host import Host
from delayctl.testing.sockets import Sockets
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import plural, quoted, shorten

_MOST_NAMED = 3
_MANY = 1_000  # Messages dealt with at one moment, beside ten for each that was there.
_EACH = 10


class Rest:
    """The end of a client's work. `check` raises what has gone wrong meanwhile; `retried` are queues with retries."""

    def __init__(self, host: Host, sockets: Sockets, patience_s: float, retried: Set[str]) -> None:
        self._host, self._sockets = host, sockets
        self._patience_s = patience_s
        self._retried = retried

    def come(self, pending: Callable[[], int], check: Callable[[], None]) -> None:
        """Wait until clients have dealt with all they got, and nothing of theirs is on its way."""
        refuse_in_handler()
        began, acked = time.monotonic(), self._host.acked
        most = acked + _MANY + _EACH * (self._there() + pending())
        before = -1

        def is_at_rest() -> bool:
            check()
            self._check_progress()
            return not self._host.turns.unsettled and not pending()

        while before != self._host.acked:  # As long as they get on, they may take their time.
            before = self._host.acked
            if before > most and time.monotonic() - began > self._patience_s:
                raise self._endless(before - acked)
            if self._sockets.await_rest(is_at_rest, self._patience_s):
                return
            check()
        raise self._not_at_rest(pending())

    def _there(self) -> int:
        with self._sockets.lock:
            return sum(len(queue) + queue.unacked for queue in self._host.queues.values())

    def _check_progress(self) -> None:
        """Raise where a message without retries comes back again and again."""
        queue = self._host.returns.hopeless()
        if queue is not None and queue not in self._retried:
            raise NotAtRest(
                f"the handler of {quoted(queue)} keeps failing, and the queue has no retry: "
                "its message comes again at once, without end",
                fix=f"add it to the topology: retry: {{{queue}: {{levels: […], park: {queue}.dlq}}}}, "
                "or let the handler return",
            )

    def _endless(self, count: int) -> NotAtRest:
        with self._sockets.lock:
            busy = self._host.turns.unsettled
        last = f", the last of {quoted(busy[0].queue)}" if busy else ""
        return NotAtRest(
            f"handlers dealt with {count:,} messages at one moment{last}, and there are always more: "
            "it looks as if one sends to its own queue, without a delay",
            fix="let it publish with a delay, or not for ever; allow more with patience_s where it does end",
        )

    def _not_at_rest(self, pending: int) -> NotAtRest:
        with self._sockets.lock:
            busy = self._host.turns.unsettled
        if busy:
            what = f"{plural(len(busy), 'delivery')} not acknowledged: " + _named(busy)
        else:
            what = f"{plural(pending, 'message')} of publishers not answered" if pending else "they keep talking"
        return NotAtRest(
            f"clients did not come to rest within {self._patience_s:g} s, so that no time can pass; {what}",
            fix="let handlers return and acknowledge, allow more with patience_s, or do not wait: advance(…, wait=False); "
            "a consumer that acknowledges in batches needs in_turn=False",
        )


def refuse_in_handler() -> None:
    """Refuse to wait for a handler inside it."""
    if is_in_handler():
        raise DelayctlError(
            "a handler can't let time pass, or wait for clients to come to rest: it is one that they wait for",
            fix="call advance and settle in the test, after the handler has returned",
        )


def _named(busy: list[Delivery]) -> str:
    names = [f"{each.queue} {shorten(repr(each.body))}" for each in busy[:_MOST_NAMED]]
    return ", ".join(names) + (f" and {len(busy) - _MOST_NAMED} more" if len(busy) > _MOST_NAMED else "")
