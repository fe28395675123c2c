"""Hypothesis strategies for valid topologies: whatever they make, a file can say."""

from dataclasses import replace

from delayctl.topology.arguments import is_number_argument
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.model import EXCHANGE_TYPES, OVERFLOWS, QUEUE_TYPES, Arguments, Kind, freeze_arguments
from delayctl.topology.names import MAX_NAME_BYTES, Names
from delayctl.topology.spec import (
    ROCKETMQ_LEVELS,
    ExchangeSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    SettingsHome,
    Spec,
    Target,
    WaitSpec,
)
from hypothesis import strategies as st

PATTERN_WORDS = frozenset({"*", "#"})
MAX_INTEGER = 2**63 - 1
HOMES: tuple[SettingsHome, ...] = ("arguments", "policy")

# Texts that mean something to YAML or to Jinja2 where they are not quoted.
AWKWARD = (
    *(
        "null",
        "~",
        "true",
        "False",
        "5",
        "1_000",
        "1.5",
        "1e3",
        ".inf",
        "on",
        "1:30",
        "<<",
        "=",
        "-",
        "- a",
        "---",
        "...",
    ),
    *(
        "a: b",
        "a #b",
        "#",
        "*",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "[a]",
        "{a}",
        "a,b",
        "'",
        '"',
        "\\",
        "\\x41",
        "'a'",
        "|",
        ">-",
    ),
    *(
        "{{",
        "{{ a }}",
        "{% raw %}",
        "{# a #}",
        "{{{",
        "{%",
        "}}",
        "%}",
        "{# ",
        "# {{",
        " a",
        "a ",
        "a  b",
        "\xa0",
        "\u2028",
        "\x85",
        "\ufeff",
    ),
)

durations = st.builds(Duration, st.integers(1, MAX_TTL_MS) | st.sampled_from([1, 1_000, 60_000, 300_000, MAX_TTL_MS]))


def fits(text: str, most: int = MAX_NAME_BYTES) -> bool:
    """Say whether a text is short enough for AMQP."""
    return len(text.encode()) <= most


def _is_name(text: str) -> bool:
    return bool(text) and not text.startswith("amq.") and fits(text)


_clean = st.characters(exclude_categories=["Cs", "Cc"])
_words = st.lists(
    st.sampled_from(["orders", "order", "stores", "eu", "eu1", "created", "timeout", "queue", "exchange", "x"]),
    min_size=1,
    max_size=3,
).map(".".join)
names = (_words | st.sampled_from(AWKWARD) | st.text(_clean, min_size=1, max_size=20)).filter(_is_name)
labels = names | st.just("amq.shop")
routing_keys = (
    _words | st.sampled_from(["#", "*.created", "order.#", *AWKWARD]) | st.text(min_size=1, max_size=20)
).filter(lambda key: bool(key) and fits(key))


@st.composite
def waits(draw: st.DrawFn) -> WaitSpec:
    """How a delay queue keeps what waits."""
    limits = st.none() | st.sampled_from([1, 1_000_000]) | st.integers(1, MAX_INTEGER)
    if draw(st.booleans()):
        return WaitSpec("quorum", draw(limits), draw(limits), "reject-publish", at_least_once=True)
    return WaitSpec(draw(st.sampled_from(QUEUE_TYPES)), draw(limits), draw(limits), draw(st.sampled_from(OVERFLOWS)))


_own_level_names = st.text(
    st.characters(categories=["Ll", "Lu", "Lo", "Nd"]) | st.sampled_from("-_"), min_size=1, max_size=12
).filter(lambda name: fits(name, 50) and not Names().reserved(name))


@st.composite
def levels(draw: st.DrawFn) -> tuple[LevelSpec, ...]:
    """Levels with names of their own or named by their duration, alike or each in its own way."""
    usual = draw(waits())
    wait = st.just(usual) | waits() if draw(st.booleans()) else st.just(usual)
    if draw(st.booleans()):
        named = {name: Duration.parse(name) for name in ROCKETMQ_LEVELS.split()}
    else:
        named = draw(st.dictionaries(_own_level_names | durations.map(str), durations, min_size=1, max_size=5))
        if draw(st.booleans()):
            named = {str(ttl): ttl for ttl in named.values()}
    made = [LevelSpec(name, ttl, draw(wait)) for name, ttl in named.items()]
    return tuple(sorted(made, key=lambda level: (level.ttl, level.name)))


@st.composite
def exchanges(draw: st.DrawFn, name: str) -> ExchangeSpec:
    """A business exchange of this name."""
    if draw(st.booleans()):
        return ExchangeSpec(name, draw(st.none() | st.sampled_from(EXCHANGE_TYPES)), existing=True)
    return ExchangeSpec(name, draw(st.sampled_from(EXCHANGE_TYPES)), draw(st.none() | names))


_any_arguments = st.dictionaries(
    names.map(lambda name: f"x-{name}").filter(lambda name: fits(name) and name != "x-queue-type")
    | st.just("x-overflow"),
    st.text(max_size=20) | st.sampled_from(AWKWARD) | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.booleans(),
    max_size=3,
).filter(lambda arguments: not any(map(is_number_argument, arguments)))
_number_arguments = st.dictionaries(
    st.sampled_from(["x-message-ttl", "x-max-length", "x-delivery-limit"]), st.integers(0, MAX_INTEGER), max_size=3
)
arguments: st.SearchStrategy[Arguments] = st.builds(
    lambda some, numbers: freeze_arguments({**some, **numbers}), _any_arguments, _number_arguments
)


@st.composite
def queues(draw: st.DrawFn, name: str) -> QueueSpec:
    """A business queue of this name."""
    kind = draw(st.none() | st.sampled_from(QUEUE_TYPES))
    if draw(st.booleans()):
        return QueueSpec(name, kind, existing=True)
    return QueueSpec(name, kind, arguments=draw(arguments))


@st.composite
def routes(
    draw: st.DrawFn, levels: tuple[LevelSpec, ...], exchanges: tuple[ExchangeSpec, ...], queues: tuple[QueueSpec, ...]
) -> RouteSpec:
    """A route between these objects."""
    sources = [exchange for exchange in exchanges if exchange.type != "headers"]
    source = draw(st.none() | st.sampled_from(sources)) if sources else None
    level = draw(st.sampled_from(levels).map(lambda level: level.name))
    keys = routing_keys
    if source and source.type == "direct":
        keys = keys.filter(lambda key: PATTERN_WORDS.isdisjoint(key.split(".")))
    route = RouteSpec(
        keys=tuple(draw(st.lists(keys, min_size=1, max_size=3, unique=True))),
        targets=tuple(draw(st.lists(_targets(exchanges, queues), min_size=1, max_size=3, unique=True))),
        source=source.name if source else None,
        level=draw(st.none() | st.just(level)) if source else level,
    )
    circles = route.source is not None and Target("exchange", route.source) in route.targets
    return replace(route, level=None) if circles else route


def _targets(exchanges: tuple[ExchangeSpec, ...], queues: tuple[QueueSpec, ...]) -> st.SearchStrategy[Target]:
    kinds: list[tuple[Kind, str]] = [("exchange", exchange.name) for exchange in exchanges]
    kinds += [("queue", queue.name) for queue in queues]
    return st.sampled_from([Target(kind, name) for kind, name in kinds])


@st.composite
def retries(
    draw: st.DrawFn, levels: tuple[LevelSpec, ...], queues: tuple[QueueSpec, ...], prefix: str
) -> tuple[RetrySpec, ...]:
    """Retries of some of these queues, parked in others."""
    keys = {queue.name: Names(prefix).retry_key(queue.name) for queue in queues}
    able = [name for name, key in keys.items() if fits(key) and PATTERN_WORDS.isdisjoint(key.split("."))]
    retried = draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able and len(queues) > 1 else []
    return tuple(draw(_retries_of(name, levels, queues)) for name in retried)


@st.composite
def _retries_of(draw: st.DrawFn, queue: str, levels: tuple[LevelSpec, ...], queues: tuple[QueueSpec, ...]) -> RetrySpec:
    park = draw(st.sampled_from([other.name for other in queues if other.name != queue]))
    known = [level.name for level in levels]
    rocketmq = tuple(ROCKETMQ_LEVELS.split()[2:])
    if draw(st.booleans()) and set(rocketmq) <= set(known):
        return RetrySpec(queue, (rocketmq + rocketmq[-1:] * 4)[: draw(st.integers(1, 20))], park)
    waits = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    return RetrySpec(queue, tuple(waits + waits[-1:] * draw(st.integers(0, 20))), park)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A whole file."""
    made = draw(levels())
    prefix = draw(st.just("") | names.filter(lambda prefix: fits(prefix, 100)))
    own = Names(prefix)
    taken = {own.exit(), own.unrouted_exchange(), own.unrouted_queue(), own.lock()}
    taken |= {name(level.name) for level in made for name in (own.entrance, own.delay_queue)}
    free = st.lists(names.filter(lambda name: name not in taken), max_size=4, unique=True).map(sorted)
    listed_exchanges = tuple(draw(exchanges(name)) for name in draw(free))
    listed_queues = tuple(draw(queues(name)) for name in draw(free))
    has_targets = bool(listed_exchanges or listed_queues)
    ways = (
        st.lists(routes(made, listed_exchanges, listed_queues), max_size=3, unique=True) if has_targets else st.just([])
    )
    return Spec(
        levels=made,
        vhost=draw(st.none() | labels),
        prefix=prefix,
        settings=draw(st.sampled_from(HOMES)),
        policy_priority=draw(st.just(10) | st.integers(-1000, 1000)),
        exchanges=listed_exchanges,
        queues=listed_queues,
        routes=tuple(draw(ways)),
        retries=draw(retries(made, listed_queues, prefix)),
    )
