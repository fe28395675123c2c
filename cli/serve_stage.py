"""One topology on its broker, as `delayctl serve` looks at it and acts on it."""

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from delayctl.cli.bedside import Bedside
from delayctl.cli.moving import Order, carry_out, result_json, result_text
from delayctl.cli.pending_views import Found, Place
from delayctl.cli.redrive import decision, is_there_on, network_of
from delayctl.cli.returning import returning
from delayctl.cli.serve_views import (
    Seen,
    Taken,
    counted_queues,
    histories,
    map_of,
    page_json,
    parked_json,
    quickly_counted,
)
from delayctl.cli.serve_words import answer_of_page, of_page
from delayctl.cli.simulate import foretell
from delayctl.cli.simulate_json import simulate_json
from delayctl.consumers.homes import Homes, Known
from delayctl.consumers.look import look
from delayctl.consumers.sighting import Sighting
from delayctl.topology.diagnosis import diagnose
from delayctl.topology.doctor import CHECKS
from delayctl.topology.errors import BrokerError, DelayctlError, NotPermitted
from delayctl.topology.figures import Figures, Statistics
from delayctl.topology.lint import lint
from delayctl.topology.picture_depict import depict
from delayctl.topology.picture_subject import subject_of_live
from delayctl.topology.rabbit import RabbitBroker
from delayctl.topology.verdict import verdict
from delayctl.topology.wording import escaped, quoted
from delayctl.web.stage import Chosen, Observation

_MOST_LOOKED_AT = 10_000
_PREVIEW = 2_000  # Bytes of a body.
_TAKEN = "columns=name,message_stats.deliver_get"
_TAKEN_WINDOW_S = 30.0
_MOST_WORK = 2_000_000  # Comings and goings in an answer: tens of seconds at most, for which all other questions wait.
_LISTS = ("rates", "bursts", "consume", "away", "consumer_away")
_SINGLES = ("length", "delay", "message_size", "key")
_NO_QUESTION: dict[str, Any] = {
    **dict.fromkeys(_LISTS, ()),
    **dict.fromkeys((*_SINGLES, "arrivals", "exchange", "memory_per_message", "step")),
    "is_spread": False,
    "levels": (),
    "give_up": False,
}


class LiveStage:
    """A file and a broker; a connection for counting is kept, all others are opened when they are needed."""

    def __init__(self, bedside: Bedside, *, title: str) -> None:
        assert bedside.file is not None
        self._bedside, self._file, self._title = bedside, bedside.file, title
        self._lint = lint(bedside.spec, bedside.desired).findings
        self._known = Known.of(bedside.spec)
        self._broker: RabbitBroker | None = None
        self._beyond_ready: dict[
            str, int
        ] = {}  # Messages that counting does not see: held by clients, or on their way.
        self._last: Mapping[str, int | None] = {}
        self._closed: set[str] = set()  # Queues that this user may not count; asked once, as brokers log every refusal.
        self._acting, self._thinking = threading.Lock(), threading.Lock()
        self._given: deque[tuple[float, dict[str, int]]] = deque()  # What consumers were given, over the last while.

    def observe(self) -> Observation:
        """Look at everything; parked messages are left alone."""
        bedside = self._bedside
        examination = bedside.examine(peeks=False, why_not="the tab Parked looks, when it is asked to")
        figures = examination.figures
        live = examination.live
        title = f"{self._title} on virtual host {bedside.host.vhost}, RabbitMQ {live.version}"
        subject = subject_of_live(bedside.spec, bedside.desired, live, Statistics(figures), title=title)
        seen = Seen(
            self._title,
            examination,
            verdict(examination.status, source=self._file),
            diagnose(CHECKS, examination),
            self._lint,
            self._taken(),
            depict(subject),
        )
        map, counted = map_of(seen.picture), counted_queues(seen)
        self._beyond_ready = {name: _beyond_ready(figures[name]) for name in counted if name in figures}
        self._last = {name: figures[name].waiting if name in figures else None for name in counted}
        return Observation(examination.status, page_json(seen, map), map, counted, self.count(counted), histories(seen))

    def _taken(self) -> dict[str, Taken]:
        """How many messages consumers were given, and how fast: totals are told, rates are not always."""
        management = self._bedside.host.management
        assert management is not None
        listed = management.get(f"queues/{management.vhost}?{_TAKEN}")
        now, given = time.monotonic(), {queue["name"]: _given_of(queue) for queue in listed}
        while self._given and self._given[0][0] < now - _TAKEN_WINDOW_S:
            self._given.popleft()
        self._given.append((now, given))
        return {name: Taken(count, _rate(name, self._given)) for name, count in given.items()}

    def count(self, queues: tuple[str, ...]) -> Mapping[str, int | None]:
        """Count what is ready now; what is not, is beyond the first few hundred, or may not be counted, as of the last look."""
        try:
            self._broker = broker = self._broker or self._bedside.host.broker()
            ready = {name: self._ready(broker, name) for name in quickly_counted(queues)}
        except BrokerError:
            self.close()
            raise
        now = {name: count + self._beyond_ready.get(name, 0) for name, count in ready.items() if count is not None}
        return {**self._last, **now}

    def _ready(self, broker: RabbitBroker, queue: str) -> int | None:
        """How many messages are ready; None where a right on the queue is needed for that, and there is none."""
        if queue in self._closed:
            return None
        try:
            return broker.ready(queue)
        except NotPermitted:
            self._closed.add(queue)
            return None

    def close(self) -> None:
        """Give up the connection for counting."""
        broker, self._broker = self._broker, None
        self._closed.clear()
        if broker is not None:
            broker.__exit__()

    def parked(self, queue: str) -> dict[str, Any]:
        """Look at the first messages of a parking queue, and put them back."""
        self._check_parking(queue)
        host = self._bedside.host
        given_back = returning(host, queue)
        seen = look(host.access, queue, _MOST_LOOKED_AT, given_back.most, self._known.delays, preview=_PREVIEW)
        place = Place(queue, None)
        found = Found(place, seen.ready, seen.seen, seen.held_ms, seen.is_worn, given_back.keeps_place)
        return parked_json(found, seen.bodies)

    def redrive(self, chosen: Chosen) -> dict[str, Any]:
        """Move messages as `delayctl redrive` does, one request after the other."""
        self._check_parking(chosen.queue)
        host, spec, known = self._bedside.host, self._bedside.spec, self._known
        homes = Homes(known, network_of(host, spec), is_there=is_there_on(host))
        decide = decision(homes, lambda seen, _: _is_meant(chosen, seen))
        exit = known.exit if spec.has_delays else ""
        if not self._acting.acquire(blocking=False):
            raise DelayctlError("messages are being moved already", fix="wait until that is done")
        try:
            result = carry_out(Order(host, chosen.queue, decide, exit, False, None, None, "Redriven", "Would redrive"))
        finally:
            self._acting.release()
        if error := result.trouble:
            raise DelayctlError(f"{error.what}; before that: {result_text(result)}", fix=error.fix) from error
        return {**result_json(result), "text": result_text(result)}

    def _check_parking(self, queue: str) -> None:
        """Nothing but what is parked is shown or moved."""
        parking = {*self._known.parks, *([self._known.unrouted] if self._bedside.spec.has_delays else [])}
        if queue not in parking:
            what = f"{quoted(queue)} is no parking queue of {self._title}"
            raise DelayctlError(what, fix=f"choose one of: {', '.join(sorted(parking)) or 'none'}")

    def what_if(self, question: Mapping[str, str]) -> dict[str, Any]:
        """Answer as `delayctl simulate` does."""
        asked = dict(_NO_QUESTION)
        for name in _SINGLES:
            asked[name] = question.get(name, "").strip() or None
        for name in _LISTS:
            asked[name] = tuple(part.strip() for part in question.get(name, "").split(",") if part.strip())
        try:
            with self._thinking:  # Two at once would take twice as long each.
                return answer_of_page(simulate_json(foretell(self._file, self._bedside.spec, asked, most=_MOST_WORK)))
        except DelayctlError as error:
            raise of_page(error) from error


def _beyond_ready(figures: Figures) -> int:
    return (figures.unacknowledged or 0) + figures.dead_lettering


def _given_of(queue: Mapping[str, Any]) -> int:
    count = (queue.get("message_stats") or {}).get("deliver_get")
    return count if isinstance(count, int) else 0


def _rate(queue: str, given: Sequence[tuple[float, Mapping[str, int]]]) -> float | None:
    """Messages per second since the first of these moments; a broker that was started anew counts from 0."""
    (began, first), (ended, last) = given[0], given[-1]
    if ended <= began:
        return None
    return round(max(0, last[queue] - first.get(queue, 0)) / (ended - began), 2)


def _is_meant(chosen: Chosen, seen: Sighting) -> bool:
    """Say whether a message was chosen, as the page has shown it."""
    if chosen.ids is not None:
        return seen.message_id is not None and escaped(seen.message_id) in chosen.ids
    reason = None if seen.reason is None else escaped(seen.reason)
    return chosen.kind is None or (escaped(seen.key), reason) == chosen.kind
