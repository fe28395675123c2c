"""A subject to its picture: cards, the ways between them, and in which column each card stands."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from delayctl.topology.model import Binding, Queue, Settings
from delayctl.topology.names import ANY, shard_name
from delayctl.topology.picture import Card, Edge, Mark, Picture, Row, Thing
from delayctl.topology.picture_cast import EXIT, NET, PUBLISHERS, Cast, ends, relations
from delayctl.topology.picture_columns import arranged
from delayctl.topology.picture_rows import in_rows, limits, out_rows, retry_note, retry_remarks, together
from delayctl.topology.picture_subject import Subject
from delayctl.topology.spec import MOST_SHARDS
from delayctl.topology.wording import plural


def depict(subject: Subject) -> Picture:
    """Draw a subject, so far as a value can."""
    scene = _Depiction(subject)
    cards, edges = arranged(scene.cards(), scene.edges(), scene.cast.waits)
    return Picture(subject.title, subject.subtitle or scene.summary(), subject.view, cards, edges)


class _Depiction:
    """The cards and ways of one subject."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.cast = subject, Cast(subject)
        self._things: dict[str, list[Thing]] = defaultdict(list)
        for thing in self.cast.things:
            self._things[self.cast.card_of(thing)].append(thing)
        self._between: dict[tuple[str, str], list[Binding]] = defaultdict(list)
        self._out: dict[str, list[Binding]] = defaultdict(list)
        self._in_from_exit: dict[str, list[Binding]] = defaultdict(list)
        for binding in subject.bindings:
            source, target = map(self.cast.card_of, ends(binding))
            self._between[source, target].append(binding)
            if source == EXIT and target not in (EXIT, NET):
                self._in_from_exit[target].append(binding)
            elif source != target:
                self._out[source].append(binding)
        self._in_rows = {id: self._rows_into(id) for id in self._in_from_exit}
        self._cards = {card.id: card for card in self._all_cards()}

    def _rows_into(self, id: str) -> list[Row]:
        rows = in_rows(self.subject, self.cast, self._in_from_exit[id])
        # On the card of a source all other rows lead out.
        return [replace(row, text=f"← {row.text}") for row in rows] if id in self.cast.sources else rows

    def cards(self) -> tuple[Card, ...]:
        """Every card."""
        return tuple(self._cards.values())

    def summary(self) -> str:
        """What is on the picture, in one line."""
        levels = len(self.cast.levels)
        ladder = ["a ladder for any delay"] if len(self.cast.waits) > levels else []
        exchanges, queues = (sum(thing.kind == kind for thing in self.cast.things) for kind in ("exchange", "queue"))
        counted = [plural(levels, "level")] if levels or not ladder else []
        counted += [*ladder, plural(len(self.subject.routes), "route")] if self.subject.routes else ladder
        return ", ".join([*counted, plural(exchanges, "exchange"), plural(queues, "queue")])

    def _all_cards(self) -> Iterator[Card]:
        rows = tuple(row for _, row in self._publisher_rows())
        if rows:
            yield Card(PUBLISHERS, "publishers", "publishers", "to the entrance", rows=rows)
        for id, things in self._things.items():
            yield self._wait(id, things) if id in self.cast.waits else self._place(id, things)

    def _wait(self, id: str, things: list[Thing]) -> Card:
        level = id.removeprefix("level ")
        name = self.subject.names.delay_queue(level)
        rungs = [thing for thing in things if thing.kind == "queue"]
        shards = self._shards(level)
        settings = self._together(shards or [name if level != ANY else self.subject.names.delay_queue(f"{ANY}.00")])
        title = name if level != ANY else f"{plural(len(rungs), 'step')}, {settings.ttl} to {self._longest(rungs)}"
        title = self.subject.names.shard_queues(level) if shards else title
        messages = self._messages(rungs)
        full = messages / settings.max_length if messages is not None and settings.max_length else None
        upcoming = [t for t in rungs if level != ANY and t.name not in (shards or [name])]
        spread = [Row(f"{len(shards)} shards", is_remark=True)] if shards else []
        rows = [*spread, *self._remark_rows(things), *map(self._upcoming_row, upcoming)]
        # The level's own bindings and policy belong to it, as its queue and entrance do.
        own = tuple(self._between[id, id])
        policies = [Thing("policy", self.subject.names.policy(level))]
        marks = [*map(self.subject.mark, things), *map(self.subject.mark, own)]
        marks += [self.subject.mark(of) for of in policies if of in self.subject.marks]
        role = self.cast.role_of(id, things[0])
        subtitle, badge = limits(settings), level if level != ANY else "any"
        return Card(id, role, title, subtitle, badge, tuple(rows), together(marks), tuple(things), own, messages, full)

    def _shards(self, level: str) -> list[str]:
        """The queues that a level is spread over; none where it has one of its own."""
        if self.subject.names.spread(level) not in self.subject.exchanges:
            return []
        names = (self.subject.names.delay_queue(shard_name(level, number)) for number in range(1, MOST_SHARDS + 1))
        return [name for name in names if name in self.subject.queues]

    def _together(self, queues: list[str]) -> Settings:
        """How queues that are alike keep what waits, with the room of all."""
        found = [self._settings(name) for name in queues]
        rooms = [settings.max_length for settings in found]
        room = None if None in rooms else sum(room for room in rooms if room is not None)
        return replace(found[0], max_length=room)

    def _longest(self, rungs: list[Thing]) -> str:
        waits = [self._settings(rung.name).ttl for rung in rungs]
        return str(max((wait for wait in waits if wait), default="?"))

    def _upcoming_row(self, thing: Thing) -> Row:
        count = self._messages([thing])
        waiting = f"{count:,} waiting" if count is not None else ""
        return Row(thing.name, (), waiting, self.subject.mark(thing), is_remark=True)

    def _place(self, id: str, things: list[Thing]) -> Card:
        subject, last = self.subject, things[-1]
        rows = [*self._in_rows.get(id, ()), *(row for _, row in self._rows_out_of(id, last))]
        rows += [*self._queue_remarks(id, last), *self._remark_rows(things)]
        own = tuple(self._between[id, id])
        mark = together([*map(subject.mark, things), *map(subject.mark, own)])
        role, messages = self.cast.role_of(id, last), self._messages(things)
        return Card(id, role, last.name, self._subtitle(things), "", tuple(rows), mark, tuple(things), own, messages)

    def _subtitle(self, things: list[Thing]) -> str:
        thing = things[-1]
        if self.cast.card_of(thing) == NET:
            return "queue"
        if thing.kind == "exchange":
            exchange = self.subject.exchanges.get(thing.name)
            return f"{exchange.type} exchange" if exchange and exchange.type else "exchange"
        return limits(self._settings(thing.name)) or "queue"

    def _rows_out_of(self, id: str, thing: Thing) -> list[tuple[str, Row]]:
        if id in (EXIT, NET) or id in self.cast.waits or thing.kind != "exchange":
            return []
        return out_rows(self.subject, self.cast, thing.name, self._out[id])

    def _queue_remarks(self, id: str, thing: Thing) -> Iterator[Row]:
        if id == NET:
            yield Row("what has no route is kept here", is_remark=True)
        if thing.kind != "queue" or id == NET:
            return
        settings = self._settings(thing.name)
        retry = next((retry for retry in self.subject.retries if retry.queue == thing.name), None)
        yield from retry_remarks(settings, retry)
        is_told = settings.waits_between_retries
        if settings.dead_letter_exchange == self.subject.names.exit() and not is_told:
            yield Row(
                f"{f'after {settings.ttl}' if settings.ttl else 'rejected'} → {settings.dead_letter_exchange}",
                is_remark=True,
            )
        elif settings.ttl:
            yield Row(f"expires after {settings.ttl}", is_remark=True)

    def _remark_rows(self, things: list[Thing]) -> Iterator[Row]:
        for thing in things:
            of_policy = Thing("policy", f"{thing.name.removesuffix('.queue')}.policy")
            for of in (thing, of_policy) if thing.kind == "queue" else (thing,):
                for remark in self.subject.remarks.get(of, ()):
                    yield Row(remark, mark=self.subject.mark(of), is_remark=True)

    def _publisher_rows(self) -> list[tuple[str, Row]]:
        straight = [route for route in self.subject.routes if route.source is None and route.level]
        pairs = sorted({(f"level {route.level}", key) for route in straight for key in route.keys})
        order = {card: position for position, card in enumerate(self.cast.waits)}
        pairs = sorted((pair for pair in pairs if pair[0] in order), key=lambda pair: (order[pair[0]], pair[1]))
        return [(card, Row(key, (card.removeprefix("level "),))) for card, key in pairs]

    def _settings(self, queue: str) -> Settings:
        return self.subject.queues.get(queue, Queue(queue)).settings

    def _messages(self, things: list[Thing]) -> int | None:
        if self.subject.figures is None:
            return None
        known = self.subject.figures.queues
        counts = [known[thing.name].waiting for thing in things if thing.kind == "queue" and thing.name in known]
        return sum(count or 0 for count in counts) if counts else None

    def edges(self) -> tuple[Edge, ...]:
        """Every way, each once."""
        found = [
            *self._ways_out(),
            *self._ways_from_exit(),
            *self._ways_from_waits(),
            *self._other_ways(),
            *self._loops(),
        ]
        return tuple(dict.fromkeys(found))

    def _ways_out(self) -> Iterator[Edge]:
        for number, (target, row) in enumerate(self._publisher_rows()):
            yield Edge(PUBLISHERS, target, "binding", number, None, row.text, row.mark, row.waits[0])
        for id, things in self._things.items():
            rows = self._cards[id].rows
            first = len(self._in_rows.get(id, ()))
            for number, (target, row) in enumerate(self._rows_out_of(id, things[-1]), first):
                assert rows[number] == row
                yield Edge(
                    id,
                    target,
                    "binding" if row.waits else "direct",
                    number,
                    None,
                    row.text,
                    row.mark,
                    "".join(row.waits),
                )

    def _ways_from_exit(self) -> Iterator[Edge]:
        for id, rows in self._in_rows.items():
            for number, row in enumerate(rows):
                yield Edge(
                    EXIT, id, "binding", None, number, row.text, row.mark, row.waits[0] if len(row.waits) == 1 else ""
                )

    def _ways_from_waits(self) -> Iterator[Edge]:
        """What others bound to an entrance: a copy that does not wait."""
        for id in (*self.cast.waits, NET):
            for binding in self._out.get(id, ()):
                target = self.cast.card_of(ends(binding)[1])
                yield Edge(id, target, "direct", None, None, binding.key, self.subject.mark(binding))

    def _other_ways(self) -> Iterator[Edge]:
        for source, target, way in relations(self.subject):
            begin, end = self.cast.card_of(source), self.cast.card_of(target)
            if begin == end:
                continue
            if begin in self.cast.waits:
                yield Edge(begin, end, "expiry", mark=self._mark_of_expiry(begin), level=begin.removeprefix("level "))
            elif end != EXIT or way == "alternate":
                yield Edge(begin, end, way, label="no route" if way == "alternate" else "", mark=self._cards[end].mark)

    def _mark_of_expiry(self, wait: str) -> Mark:
        mark = self._cards[wait].mark
        return mark if mark in ("create", "delete", "missing") else "same"

    def _loops(self) -> Iterator[Edge]:
        for retry in self.subject.retries:
            id, waits = f"queue {retry.queue}", [f"level {wait}" for wait in retry.waits]
            if id in self._cards and waits and waits[0] in self._cards:
                rows = self._cards[id].rows
                number = next((n for n, row in enumerate(rows) if row.text == "↻ retries"), None)
                yield Edge(id, waits[0], "retry", number, None, f"retries {retry_note(retry)}", "same", retry.waits[0])
