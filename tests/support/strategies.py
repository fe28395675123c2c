"""Hypothesis strategies for valid topologies: whatever they make, a file can say."""

from dataclasses import replace

from delayctl.topology.arguments import is_number_argument
from delayctl.topology.duration import MAX_TTL_MS, Duration
from delayctl.topology.ladder import DEFAULT_STEPS, most_steps
from delayctl.topology.model import EXCHANGE_TYPES, OVERFLOWS, QUEUE_TYPES, Arguments, Kind, freeze_arguments
from delayctl.topology.names import ANY, DOT_SEGMENTS, MAX_NAME_BYTES, Names, rung_name
from delayctl.topology.parse_retry import SET_BY_RETRY
from delayctl.topology.parse_routes import X_MATCHES
from delayctl.topology.rate import Rate
from delayctl.topology.spec import (
    LONGEST_BROKER_WAIT,
    ROCKETMQ_LEVELS,
    ROLES,
    BrokerWaits,
    ExchangeSpec,
    GrantSpec,
    LadderSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    Role,
    RouteSpec,
    SettingsHome,
    Silence,
    Spec,
    Target,
    WaitSpec,
    all_steps,
    parking_circle,
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

rates = st.builds(
    lambda count, digits, unit: Rate.parse(f"{count}{digits}/{unit}"),
    st.integers(1, 10**12 - 1) | st.sampled_from([1, 200, 5_000]),
    st.just("") | st.integers(0, 999_999).map(lambda digits: f".{digits:06}"),
    st.sampled_from("smhd"),
)
sizes = st.integers(1, MAX_INTEGER) | st.sampled_from([1, 2**30, 4 * 2**30, 10**9, 512 * 10**6])


def fits(text: str, most: int = MAX_NAME_BYTES) -> bool:
    """Say whether a text is short enough for AMQP."""
    return len(text.encode()) <= most


def _is_name(text: str) -> bool:
    return bool(text) and not text.startswith("amq.") and text not in DOT_SEGMENTS and fits(text)


_clean = st.characters(exclude_categories=["Cs", "Cc"])
_words = st.lists(
    st.sampled_from(["orders", "order", "stores", "eu", "eu1", "created", "timeout", "queue", "exchange", "x"]),
    min_size=1,
    max_size=3,
).map(".".join)
names = (_words | st.sampled_from(AWKWARD) | st.text(_clean, min_size=1, max_size=20)).filter(_is_name)
labels = names | st.just("amq.shop")
routing_keys = (_words | st.sampled_from(["", "#", "*.created", "order.#", *AWKWARD]) | st.text(max_size=20)).filter(
    fits
)


@st.composite
def waits(draw: st.DrawFn) -> WaitSpec:
    """How a delay queue keeps what waits."""
    limits = st.none() | st.sampled_from([1, 1_000_000]) | st.integers(1, MAX_INTEGER)
    rate, shards = draw(st.none() | rates), draw(st.just(1) | st.integers(2, 3))
    if draw(st.booleans()):
        return WaitSpec(
            "quorum",
            draw(limits),
            draw(limits),
            "reject-publish",
            at_least_once=True,
            shards=shards,
            expected_rate=rate,
        )
    kind, overflow = draw(st.sampled_from(QUEUE_TYPES)), draw(st.sampled_from(OVERFLOWS))
    return WaitSpec(
        kind, draw(limits), draw(limits), overflow, lazy=draw(st.booleans()), shards=shards, expected_rate=rate
    )


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
def ladders(draw: st.DrawFn) -> LadderSpec:
    """A ladder, seldom longer than a few steps: each is three objects and as many bindings."""
    unit = draw(durations)
    steps = draw(st.integers(1, min(4, most_steps(unit))) | st.just(min(DEFAULT_STEPS, most_steps(unit))))
    return LadderSpec(unit, steps, replace(draw(waits()), expected_rate=None, shards=1))


_values = st.text(max_size=20) | st.sampled_from(AWKWARD) | st.integers(-MAX_INTEGER, MAX_INTEGER) | st.booleans()
_any_arguments = st.dictionaries(
    names.map(lambda name: f"x-{name}").filter(lambda name: fits(name) and name != "x-queue-type")
    | st.just("x-overflow"),
    _values,
    max_size=3,
).filter(lambda arguments: not any(map(is_number_argument, arguments)))
_number_arguments = st.dictionaries(
    st.sampled_from(["x-message-ttl", "x-max-length", "x-delivery-limit"]), st.integers(0, MAX_INTEGER), max_size=3
)
arguments: st.SearchStrategy[Arguments] = st.builds(
    lambda some, numbers: freeze_arguments({**some, **numbers}), _any_arguments, _number_arguments
)
exchange_arguments: st.SearchStrategy[Arguments] = st.dictionaries(
    names.filter(lambda name: name != "alternate-exchange"), _values, max_size=2
).map(freeze_arguments)
headers: st.SearchStrategy[Arguments] = st.builds(
    lambda looked_for, how: freeze_arguments({**looked_for, **how}),
    st.dictionaries(labels.filter(lambda name: name != "x-match"), _values, max_size=3),
    st.just({}) | st.sampled_from(X_MATCHES).map(lambda how: {"x-match": how}),
)


@st.composite
def exchanges(draw: st.DrawFn, name: str) -> ExchangeSpec:
    """A business exchange of this name."""
    if draw(st.booleans()):
        return ExchangeSpec(name, draw(st.none() | st.sampled_from(EXCHANGE_TYPES)), existing=True)
    return ExchangeSpec(
        name,
        draw(st.sampled_from(EXCHANGE_TYPES)),
        draw(st.none() | names),
        durable=draw(st.booleans()),
        auto_delete=draw(st.booleans()),
        internal=draw(st.booleans()),
        arguments=draw(exchange_arguments),
    )


@st.composite
def queues(draw: st.DrawFn, name: str) -> QueueSpec:
    """A business queue of this name."""
    kind = draw(st.none() | st.sampled_from(QUEUE_TYPES))
    if draw(st.booleans()):
        return QueueSpec(name, kind, existing=True)
    if kind == "quorum":
        return QueueSpec(name, kind, arguments=draw(arguments))
    return QueueSpec(
        name, kind, arguments=draw(arguments), durable=draw(st.booleans()), auto_delete=draw(st.booleans())
    )


@st.composite
def routes(
    draw: st.DrawFn,
    levels: tuple[LevelSpec, ...],
    exchanges: tuple[ExchangeSpec, ...],
    queues: tuple[QueueSpec, ...],
    *,
    has_ladder: bool,
) -> RouteSpec:
    """A route between these objects; without delays it needs an exchange to come from."""
    anywhere = st.none() if levels or has_ladder else st.nothing()
    source = draw(anywhere | st.sampled_from(exchanges)) if exchanges else None
    delays = [level.name for level in levels] + ([ANY] if has_ladder and source is None else [])
    level = draw(st.sampled_from(delays)) if delays else None
    targets = tuple(draw(st.lists(_targets(exchanges, queues), min_size=1, max_size=3, unique=True)))
    circles = source is not None and Target("exchange", source.name) in targets
    if source and (circles or draw(st.booleans())):
        level = None
    looked_for = draw(headers) if source and source.type in ("headers", None) else ()
    needs_key = level is not None or not source or (source.type not in ("fanout", "headers") and not looked_for)
    keys = routing_keys
    if source and source.type == "direct":
        keys = keys.filter(lambda key: PATTERN_WORDS.isdisjoint(key.split(".")))
    return RouteSpec(
        keys=tuple(draw(st.lists(keys, min_size=1 if needs_key else 0, max_size=3, unique=True))),
        targets=targets,
        source=source.name if source else None,
        level=level,
        headers=looked_for,
    )


def _targets(exchanges: tuple[ExchangeSpec, ...], queues: tuple[QueueSpec, ...]) -> st.SearchStrategy[Target]:
    kinds: list[tuple[Kind, str]] = [("exchange", exchange.name) for exchange in exchanges]
    kinds += [("queue", queue.name) for queue in queues]
    return st.sampled_from([Target(kind, name) for kind, name in kinds])


@st.composite
def retries(
    draw: st.DrawFn, levels: tuple[LevelSpec, ...], queues: tuple[QueueSpec, ...], prefix: str
) -> tuple[RetrySpec, ...]:
    """Retries of some of these queues, parked in others."""
    able = [queue for queue in queues if _is_a_key(Names(prefix).retry_key(queue.name))]
    parks = [queue.name for queue in queues if _is_a_key(Names(prefix).park_key(queue.name))]
    retried = draw(st.lists(st.sampled_from(able), max_size=2, unique=True)) if able and len(parks) > 1 else []
    drawn = [draw(_retries_of(queue, levels, parks)) for queue in retried]
    ends = {retry.queue: retry.park for retry in drawn}
    return tuple(retry for retry in drawn if not parking_circle(retry.queue, ends))


def _is_a_key(key: str) -> bool:
    return fits(key) and PATTERN_WORDS.isdisjoint(key.split("."))


@st.composite
def _retries_of(draw: st.DrawFn, queue: QueueSpec, levels: tuple[LevelSpec, ...], parks: list[str]) -> RetrySpec:
    park = draw(st.sampled_from([other for other in parks if other != queue.name]))
    is_settled = any(name in SET_BY_RETRY for name, _ in queue.arguments)
    if queue.type == "quorum" and not queue.existing and not is_settled and draw(st.booleans()):
        return RetrySpec(queue.name, (), park, draw(_broker_waits()))
    known = [level.name for level in levels]
    rocketmq = tuple(ROCKETMQ_LEVELS.split()[2:])
    if draw(st.booleans()) and set(rocketmq) <= set(known):
        return RetrySpec(queue.name, (rocketmq + rocketmq[-1:] * 4)[: draw(st.integers(1, 20))], park)
    waits = draw(st.lists(st.sampled_from(known), min_size=1, max_size=4))
    return RetrySpec(queue.name, tuple(waits + waits[-1:] * draw(st.integers(0, 20))), park)


@st.composite
def _broker_waits(draw: st.DrawFn) -> BrokerWaits:
    step, most = draw(st.integers(1, LONGEST_BROKER_WAIT.ms)), draw(st.sampled_from((1, 16, 1000)))
    longest = draw(st.none() | st.integers(step, LONGEST_BROKER_WAIT.ms))
    return BrokerWaits(Duration(step), Duration(longest) if longest else all_steps(Duration(step), most), most)


@st.composite
def grants(
    draw: st.DrawFn,
    levels: tuple[LevelSpec, ...],
    exchanges: tuple[ExchangeSpec, ...],
    queues: tuple[QueueSpec, ...],
    prefix: str,
    *,
    has_ladder: bool,
) -> tuple[GrantSpec, ...]:
    """Roles of some users, held to what the file has, or not."""
    own = Names(prefix)
    delays = [level.name for level in levels] + ([ANY] if has_ladder else [])
    able: dict[Role, list[str]] = {
        "publisher": [exchange.name for exchange in exchanges] + [own.entrance(delay) for delay in delays],
        "consumer": [queue.name for queue in queues] + ([own.unrouted_queue()] if delays else []),
        "operator": [],
        "verifier": [],
    }
    users = draw(st.lists(labels, max_size=3, unique=True))
    roles = [draw(st.sampled_from(ROLES)) for _ in users]
    some = [
        draw(st.lists(st.sampled_from(able[role]), max_size=2, unique=True)) if able[role] else [] for role in roles
    ]
    return tuple(GrantSpec(user, role, tuple(only)) for user, role, only in zip(users, roles, some, strict=True))


silences = st.builds(
    Silence,
    rule=st.integers(0, 999).map(lambda number: f"D{number:03}"),
    reason=(st.text(min_size=1) | st.sampled_from(AWKWARD)).map(lambda text: " ".join(text.split())).filter(bool),
    at=st.none() | labels,
)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A whole file, with delays or without."""
    made = draw(levels()) if draw(st.integers(0, 4)) else ()
    ladder = draw(st.none() | ladders())
    has_delays = bool(made or ladder)
    prefix = draw(st.just("") | names.filter(lambda prefix: fits(prefix, 100)))
    own = Names(prefix)
    taken = {own.exit(), own.unrouted_exchange(), own.unrouted_queue(), own.lock(), own.cancellations()}
    waits = [level.name for level in made] + [rung_name(step) for step in range(ladder.steps if ladder else 0)]
    taken |= {name(wait) for wait in waits for name in (own.entrance, own.delay_queue)}
    taken |= {own.entrance(ANY), *map(own.gate, range(ladder.steps if ladder else 0))}
    free = st.lists(names.filter(lambda name: name not in taken), max_size=4, unique=True).map(sorted)
    listed_exchanges = tuple(draw(exchanges(name)) for name in draw(free))
    listed_queues = tuple(draw(queues(name)) for name in draw(free))
    has_ways = bool(listed_exchanges or (listed_queues and has_delays))
    ways = st.lists(
        routes(made, listed_exchanges, listed_queues, has_ladder=ladder is not None), max_size=3, unique=True
    )
    return Spec(
        levels=made,
        vhost=draw(st.none() | labels),
        prefix=prefix,
        settings=draw(st.sampled_from(HOMES)) if has_delays else "arguments",
        policy_priority=draw(st.just(10) | st.integers(-1000, 1000)) if has_delays else 10,
        exchanges=listed_exchanges,
        queues=listed_queues,
        routes=tuple(draw(ways)) if has_ways else (),
        retries=draw(retries(made, listed_queues, prefix)) if made else (),
        grants=draw(grants(made, listed_exchanges, listed_queues, prefix, has_ladder=ladder is not None)),
        silences=tuple(draw(st.lists(silences, max_size=2, unique=True))),
        memory=draw(st.none() | sizes),
        ladder=ladder,
        cancel=draw(st.booleans()) if made else False,
    )
