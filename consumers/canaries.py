"""Canaries on their way: sent through every way side by side, and caught where they come out."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from delayctl.consumers.catcher import Catcher
from delayctl.publishers.choice import Way, Ways
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.frames import Properties, decode_properties
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import Access
from delayctl.topology.canary import CANARY, Flight, Observed, Sighting
from delayctl.topology.errors import DelayctlError

_LOOK_UP_EVERY_S = 0.25
_WHILE_SENDING_S = 0.002
_LINGER_S = 0.2  # What is doubled comes soon after the first.

Progress = Callable[
    [int, int, float], None
]  # How many are over, of how many, and the seconds until the last is given up.


@dataclass
class _Canary:
    """One canary, as far as it has come."""

    sent_ms: float
    delivery: Delivery
    deadline_ms: float
    sighting: Sighting | None = None
    copies: int = 0

    @property
    def is_refused(self) -> bool:
        return self.delivery.done() and self.delivery.exception() is not None

    def is_over(self, now_ms: float) -> bool:
        return self.sighting is not None or self.is_refused or now_ms >= self.deadline_ms


class Flock:
    """The canaries of one run, until all have come or are given up: each `patience_s` after it was due."""

    def __init__(self, catcher: Catcher, *, run: str, body: bytes, patience_s: float, show: Progress) -> None:
        self._catcher = catcher
        self._run = run
        self._body = body
        self._patience_s = patience_s
        self._show = show
        self._by_id: dict[str, _Canary] = {}

    def fly(self, access: Access, exit: str, flights: Sequence[Flight]) -> list[Observed]:
        """Send all flights and wait for what comes."""
        # It checks the exit and no entrance: one that is missing is a finding, and no reason to stop.
        publisher = DelayPublisher(access, topology=Ways(exit, ()), name="delayctl verify")
        try:
            released = [self._release(publisher, flight) for flight in flights]
            self._await()
            return [_observed(canaries, is_blocked=publisher.is_blocked) for canaries in released]
        finally:
            with suppress(NotConfirmed):  # Whoever has not answered by now was waited for.
                publisher.close(0)

    def _release(self, publisher: DelayPublisher, flight: Flight) -> list[_Canary]:
        canaries = [self._send(publisher, flight) for _ in range(flight.count)]
        # One flight after the other: a refusal closes the channel, and what is not confirmed then is sent again.
        until = canaries[0].sent_ms + self._patience_s * 1000
        while not all(each.delivery.done() for each in canaries) and _now_ms() < until and not publisher.is_blocked:
            self._catch(_WHILE_SENDING_S)
        return canaries

    def _send(self, publisher: DelayPublisher, flight: Flight) -> _Canary:
        probe, sent_ms = flight.probe, _now_ms()
        expiration = None if flight.hasten_ms is None else str(flight.hasten_ms)
        message_id = f"{self._run}-{len(self._by_id)}"
        delivery = publisher.send(
            self._body,
            Way(probe.exchange),
            key=probe.key,
            message_id=message_id,
            headers={**probe.headers, CANARY: self._run},
            properties=Properties(expiration=expiration, content_type="application/json"),
        )
        canary = _Canary(sent_ms, delivery, sent_ms + flight.wait_ms + self._patience_s * 1000)
        self._by_id[message_id] = canary
        return canary

    def _await(self) -> None:
        while pending := [canary for canary in self._by_id.values() if not canary.is_over(_now_ms())]:
            left_s = (max(canary.deadline_ms for canary in pending) - _now_ms()) / 1000
            self._show(len(self._by_id) - len(pending), len(self._by_id), max(0.0, left_s))
            self._catch(min(_LOOK_UP_EVERY_S, left_s))
        until = time.monotonic() + _LINGER_S
        while (left_s := until - time.monotonic()) > 0:
            self._catch(left_s)

    def _catch(self, patience_s: float) -> None:
        """Take in what has come, be it after a while."""
        caught = self._catcher.caught(patience_s)
        arrived_ms = _now_ms()
        for each in caught:
            properties = decode_properties(each.header)
            canary = self._by_id.get(properties.message_id or "")
            if canary is None:
                continue  # Of an earlier run that gave it up.
            canary.copies += 1
            if canary.sighting is None:
                canary.sighting = Sighting(canary.sent_ms, arrived_ms, each.key, properties.headers or {})


def _observed(canaries: Sequence[_Canary], *, is_blocked: bool) -> Observed:
    errors = [canary.delivery.exception() for canary in canaries if canary.is_refused]
    return Observed(
        sent=len(canaries),
        sightings=tuple(canary.sighting for canary in canaries if canary.sighting),
        refusals=tuple(error.what if isinstance(error, DelayctlError) else str(error) for error in errors),
        unconfirmed=sum(not canary.delivery.done() and canary.sighting is None for canary in canaries),
        is_blocked=is_blocked,
        twice=sum(canary.copies > 1 for canary in canaries),
    )


def _now_ms() -> float:
    return time.monotonic() * 1000
