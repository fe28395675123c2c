"""Hypothesis strategies for scripts: a network whose queues are limited, expire and dead-letter, and what is done on it."""

import itertools
from dataclasses import dataclass, replace

from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.routing import Message
from hypothesis import strategies as st

from tests.support.networks import KEYS, MISSING, QUEUES, Case, cases

UNIT = 300  # Milliseconds. Every time to live is a multiple of it; what is done in a phase takes less than half of it.
PHASE = 750  # Between phases nothing is just about to expire.
EXIT = "exit"  # An exchange that leads somewhere, whatever the key is.
ANSWERS = ("ack", "reject", "reject", "requeue", "requeue", "nack", "nack-requeue")
GETS = -1  # Stands for the deliveries that were taken with `get`, beside the numbers of consumers.


@dataclass(frozen=True)
class Publish:
    """A message is published, mandatory and confirmed."""

    exchange: str
    message: Message
    body_size: int = 0
    expiration: str | None = None


@dataclass(frozen=True)
class Get:
    """A message is taken, to be answered later."""

    queue: str


@dataclass(frozen=True)
class Consume:
    """A consumer comes."""

    queue: str
    prefetch: int
    no_ack: bool


@dataclass(frozen=True)
class Answer:
    """The oldest delivery of a consumer that is not answered yet is answered, or of the next one that has any."""

    consumer: int
    how: str  # ack, reject, requeue, nack or nack-requeue.


@dataclass(frozen=True)
class Purge:
    """A queue is emptied."""

    queue: str


Action = Publish | Get | Consume | Answer | Purge


@dataclass(frozen=True)
class Script:
    """A network, and phases of things that are done at once; `rests` says after which of them all comes to rest."""

    live: Live
    phases: tuple[tuple[Action, ...], ...]
    rests: tuple[bool, ...]


_QUEUE = st.sampled_from(QUEUES)
_SIZES = st.sampled_from((20, 10, 0, 20))
_EXPIRATIONS = st.sampled_from((None, None, None, None, "0", str(UNIT), str(3 * UNIT)))
_ANSWERS = st.builds(Answer, st.sampled_from((GETS, GETS, 0, 0, 1)), st.sampled_from(ANSWERS))


@st.composite
def _settings(draw: st.DrawFn, exchanges: list[str], others: list[str]) -> Settings:
    is_quorum = draw(st.integers(0, 2)) == 0
    exit, key = draw(_exits(exchanges, others))
    ttl = draw(st.sampled_from((None, 1, 0, 3, 1, None)))
    overflows = (None, "drop-head", "reject-publish", *(() if is_quorum else ("reject-publish-dlx",)))
    is_kept = is_quorum and exit is not None and draw(st.integers(0, 2)) == 0
    max_bytes = draw(st.sampled_from((None, 25, None, 40)))
    return Settings(
        type="quorum" if is_quorum else "classic",
        ttl=None if ttl is None else Duration(ttl * UNIT),
        max_length=draw(st.sampled_from((None, None, None, 2, 1, 3, 0) if max_bytes is None else (None, None, 3))),
        max_bytes=max_bytes,
        overflow="reject-publish" if is_kept else draw(st.sampled_from(overflows)),
        dead_letter_exchange=exit,
        dead_letter_key=key,
        dead_letter_strategy="at-least-once" if is_kept else None,
        delivery_limit=draw(st.sampled_from((None, None, 0, 1, 2))) if is_quorum else None,
    )


@st.composite
def _exits(draw: st.DrawFn, exchanges: list[str], others: list[str]) -> tuple[str | None, str | None]:
    """A dead-letter exchange and key: more often than not straight into another queue, for most others lead nowhere."""
    if draw(st.integers(0, 2)) > 0:
        return draw(
            st.sampled_from((*(("", queue) for queue in others), *((EXIT, key) for key in (None, None, None, "a"))))
        )
    exit = draw(st.sampled_from((*exchanges, *exchanges, None, "", MISSING)))
    return exit, None if exit is None else draw(st.sampled_from((None, None, *KEYS)))


@st.composite
def _policies(draw: st.DrawFn, exchanges: list[str]) -> tuple[Policy, ...]:
    if draw(st.integers(0, 3)) > 0:
        return ()
    definitions: tuple[dict[str, object], ...] = (
        {"alternate-exchange": exchanges[-1]},
        {"message-ttl": UNIT},
        {"max-length": 1},
        {"max-length": 2, "overflow": "reject-publish"},
        {"dead-letter-exchange": exchanges[0]},
        {"message-ttl": 3 * UNIT, "dead-letter-exchange": exchanges[-1], "dead-letter-routing-key": "a.b"},
    )
    definition = draw(st.sampled_from(definitions))
    apply_to = "exchanges" if "alternate-exchange" in definition else "queues"
    pattern = draw(st.sampled_from((".*", "0$", "[12]$")))
    return (Policy("policy", pattern, apply_to, 0, freeze_arguments(definition)),)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """A network and up to three phases."""
    case = draw(cases())
    exchanges = sorted(case.live.exchanges)
    queues = {name: Queue(name, draw(_settings(exchanges, _others(name)))) for name in QUEUES}
    if draw(st.booleans()):
        queues[QUEUES[-1]] = Queue(QUEUES[-1])  # Somewhere to rest.
    live = replace(
        case.live,
        exchanges={**case.live.exchanges, EXIT: Exchange(EXIT, draw(st.sampled_from(("fanout", "topic"))))},
        queues=queues,
        bindings=case.live.bindings | draw(st.frozensets(_QUEUE.map(_way_out), min_size=1, max_size=2)),
        policies=draw(_policies(exchanges)),
    )
    bursts = st.one_of(_taken(), _consumed(), _taken(), _published(case), _mixed(case))
    phases = tuple(
        tuple(itertools.chain(*draw(st.lists(bursts, min_size=1, max_size=2)))) for _ in range(draw(st.integers(1, 3)))
    )
    return Script(live, phases, tuple(draw(st.booleans()) for _ in phases))


def _way_out(queue: str) -> Binding:
    return Binding(EXIT, "queue", queue, "#")


def _others(queue: str) -> list[str]:
    """The queues after this one, and now and then itself."""
    at = QUEUES.index(queue)
    others = [*QUEUES[at + 1 :], *QUEUES[:at]]
    return [*others, *others[:2], queue]


def _straight(queue: str) -> st.SearchStrategy[Action]:
    return st.builds(Publish, st.just(""), st.just(Message(queue)), _SIZES, _EXPIRATIONS)


def _routed(case: Case) -> st.SearchStrategy[Action]:
    ways = st.sampled_from(case.publishes)
    return ways.flatmap(
        lambda way: st.builds(Publish, st.just(way.exchange), st.just(way.message), _SIZES, _EXPIRATIONS)
    )


@st.composite
def _taken(draw: st.DrawFn) -> list[Action]:
    """Messages into a queue, some of them taken, some of these answered."""
    queue = draw(_QUEUE)
    published = draw(st.lists(_straight(queue), min_size=1, max_size=4))
    taken = draw(st.lists(st.just(Get(queue)), min_size=1, max_size=3))
    return [*published, *taken, *draw(st.lists(_ANSWERS, min_size=1, max_size=3))]


@st.composite
def _consumed(draw: st.DrawFn) -> list[Action]:
    """One or two consumers, messages for them, and some answers."""
    queue = draw(_QUEUE)
    # A quorum queue hands a consumer that never answers its prefetch at a time, so that chance decides which of two is next.
    ways = st.sampled_from(((1, False), (0, False), (2, False), (0, True)))
    taking = ways.map(lambda way: Consume(queue, *way))
    consumers = draw(st.lists(taking, min_size=1, max_size=2))
    then = draw(st.lists(_straight(queue) | _ANSWERS, min_size=2, max_size=6))
    return [*draw(st.lists(_straight(queue), max_size=2)), *consumers, *then]


@st.composite
def _published(draw: st.DrawFn, case: Case) -> list[Action]:
    """Messages into the network, and into queues."""
    return draw(st.lists(_QUEUE.flatmap(_straight) | _routed(case), min_size=1, max_size=5))


@st.composite
def _mixed(draw: st.DrawFn, case: Case) -> list[Action]:
    """Anything after anything."""
    anything = st.one_of(
        _QUEUE.flatmap(_straight), _routed(case), st.builds(Get, _QUEUE), _ANSWERS, _ANSWERS, st.builds(Purge, _QUEUE)
    )
    return draw(st.lists(anything, min_size=1, max_size=6))
