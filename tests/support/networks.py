"""Hypothesis strategies for small networks that hold every trap of routing and dead-lettering, and for messages."""

from collections.abc import Mapping
from dataclasses import dataclass

from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import (
    EXCHANGE_TYPES,
    Arguments,
    Binding,
    Exchange,
    Kind,
    Policy,
    Queue,
    Settings,
    freeze_arguments,
)
from delayctl.topology.routing import Message
from hypothesis import strategies as st

QUEUES = ("q0", "q1", "q2", "q3")
EXCHANGES = ("x0", "x1", "x2", "x3")
MISSING = "nowhere"
TTLS = (None, None, None, 0, 5, 20, 60)
# What is likely stands in front and more than once: a network in which nothing matches shows little.
KEYS = ("a", "a", "a", "a.b", "a.b", "b", "", "a.b.c", "b.a", "a..b", "a.", ".", "*", "#", "a.#", "q0", "q1", "q2")
PATTERNS = ("#", "#", "a.#", "*", "#.b", "a.*", "*.b", "a.*.c", "#.#", "*.*", "*.#", "a.#.b", "#.a.#", *KEYS)
VALUES = (1, 1, True, "1", "1", None, 2, False, "true", "a", "")
HEADERS = ("h1", "h2", "x-h")
MATCHES = (None, "all", "any", "any", "any", "all-with-x", "any-with-x", "any-with-x")


@dataclass(frozen=True)
class Publish:
    """A message, and the exchange that it is published to."""

    exchange: str
    message: Message


@dataclass(frozen=True)
class Case:
    """A network and what is published there."""

    live: Live
    publishes: tuple[Publish, ...]


def _headers(values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(HEADERS), values, min_size=1, max_size=3)


@st.composite
def _wanted(draw: st.DrawFn) -> Arguments:
    """What a headers binding looks for, now and then where a message died."""
    wanted = draw(_headers(st.sampled_from(VALUES)))
    how = draw(st.sampled_from(MATCHES))
    if how and how.endswith("x") and draw(st.booleans()):
        wanted["x-first-death-queue"] = draw(st.sampled_from(QUEUES))
    return freeze_arguments(wanted if how is None else wanted | {"x-match": how})


@st.composite
def _exchanges(draw: st.DrawFn) -> Mapping[str, Exchange]:
    names = EXCHANGES[: draw(st.sampled_from((3, 2, 4, 1)))]
    alternates = st.sampled_from((None, None, *names, *names, MISSING, ""))
    return {
        name: Exchange(
            name,
            draw(st.sampled_from((*EXCHANGE_TYPES, "fanout", "topic"))),
            draw(alternates),
            internal=name != EXCHANGES[0] and draw(st.integers(0, 7)) == 0,
        )
        for name in names
    }


@st.composite
def _queues(draw: st.DrawFn, exchanges: list[str]) -> Mapping[str, Queue]:
    return {name: Queue(name, draw(_settings(exchanges))) for name in QUEUES[: draw(st.sampled_from((3, 4, 2, 1)))]}


@st.composite
def _settings(draw: st.DrawFn, exchanges: list[str]) -> Settings:
    ttl = draw(st.sampled_from(TTLS))
    exit = draw(st.sampled_from((*exchanges, *exchanges, *exchanges, None, "", MISSING)))
    key = None if exit is None else draw(st.sampled_from((None, None, None, *KEYS)))
    return Settings(
        type="quorum" if draw(st.integers(0, 9)) == 0 else "classic",
        ttl=None if ttl is None else Duration(ttl),
        dead_letter_exchange=exit,
        dead_letter_key=key,
    )


@st.composite
def _bindings(draw: st.DrawFn, exchanges: Mapping[str, Exchange], queues: list[str]) -> frozenset[Binding]:
    bindings = set()
    # Most exchanges lead somewhere; one that does not shows what its alternate is for.
    leading = [name for name in exchanges if draw(st.sampled_from((True, True, True, False)))]
    further = draw(st.lists(st.sampled_from(leading), max_size=8)) if leading else []
    for source in (*leading, *leading, *further):
        is_queue = draw(st.sampled_from((True, True, False)))
        destination = draw(st.sampled_from(queues if is_queue else sorted(exchanges)))
        arguments = draw(_wanted()) if exchanges[source].type == "headers" else ()
        keys = KEYS if exchanges[source].type == "direct" else PATTERNS
        kind: Kind = "queue" if is_queue else "exchange"
        bindings.add(Binding(source, kind, destination, draw(st.sampled_from(keys)), arguments))
    return frozenset(bindings)


@st.composite
def _policies(draw: st.DrawFn, exchanges: list[str]) -> tuple[Policy, ...]:
    """Now and then a policy: an alternate, a shorter TTL or a way out that no argument shows."""
    if draw(st.integers(0, 3)) > 0:
        return ()
    definitions: tuple[dict[str, object], ...] = (
        {"alternate-exchange": exchanges[-1]},
        {"message-ttl": 10},
        {"message-ttl": 10, "dead-letter-exchange": exchanges[0]},
        {"message-ttl": 30, "dead-letter-exchange": exchanges[-1], "dead-letter-routing-key": "a.b"},
    )
    definition = draw(st.sampled_from(definitions))
    apply_to = "exchanges" if "alternate-exchange" in definition else "queues"
    pattern = draw(st.sampled_from((".*", "0$", "[12]$")))
    return (Policy("policy", pattern, apply_to, 0, freeze_arguments(definition)),)


@st.composite
def _publishes(draw: st.DrawFn, exchanges: Mapping[str, Exchange]) -> Publish:
    headers = draw(_headers(st.sampled_from(VALUES)))
    for name in ("CC", "BCC"):
        if draw(st.sampled_from((False, True, False))):
            headers[name] = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=2))
    open_to_all = [name for name, exchange in exchanges.items() if not exchange.internal]
    return Publish(
        draw(st.sampled_from((*open_to_all, *open_to_all, *open_to_all, ""))),
        Message(draw(st.sampled_from(KEYS)), headers),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A network of a few exchanges and queues, and up to three messages."""
    exchanges = draw(_exchanges())
    queues = draw(_queues(sorted(exchanges)))
    live = Live(
        exchanges=exchanges,
        queues=queues,
        bindings=draw(_bindings(exchanges, sorted(queues))),
        policies=draw(_policies(sorted(exchanges))),
    )
    return Case(live, tuple(draw(st.lists(_publishes(exchanges), min_size=1, max_size=3))))
