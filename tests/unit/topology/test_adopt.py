"""A Spec for what is there: planning its file changes nothing, whatever is there."""

from dataclasses import replace
from typing import Any

import pytest
from delayctl.topology.adopt import Adopted, Note, adopt, own_prefixes
from delayctl.topology.diff import diff
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.imported import imported_text
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Settings, Table, Value, freeze_arguments
from delayctl.topology.parse import read_spec
from delayctl.topology.parse_routes import KEYLESS_TYPES
from delayctl.topology.plan import Plan
from delayctl.topology.recognise import recognise
from delayctl.topology.record import Record
from delayctl.topology.spec import (
    BrokerWaits,
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
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.broker_states import aims, brokers
from tests.support.examples import live_of
from tests.support.strategies import AWKWARD, specs
from tests.unit.topology.test_recognise import IN, OUT, host, wait

HOMES: tuple[SettingsHome, ...] = ("arguments", "policy")


def adopted(live: Live, *, prefix: str = "", everything: bool = False) -> Adopted:
    """What an import makes of a virtual host."""
    return adopt(live, recognise(live, prefix=prefix, everything=everything), vhost="shop", prefix=prefix)


def plan_of_file(live: Live, *, prefix: str = "", everything: bool = False) -> Plan:
    """The plan of the file that an import would hand out, read as anybody reads it."""
    found = recognise(live, prefix=prefix, everything=everything)
    text = imported_text(live, found, adopt(live, found, vhost="shop", prefix=prefix), vhost="shop")
    return diff(expand(read_spec(text, {}, file="topology.yaml")), live)


def test_objects_and_bindings_one_by_one() -> None:
    """What has no shape of delayctl's is listed as it is, and bound by routes without delay."""
    live = host(Exchange("orders"), Exchange("exit", "direct"), wait(type="classic"), Queue("work"), IN, OUT)

    assert adopted(live) == Adopted(
        Spec(
            (),
            vhost="shop",
            exchanges=(ExchangeSpec("exit", "direct"), ExchangeSpec("orders")),
            queues=(
                QueueSpec(
                    "wait",
                    "classic",
                    arguments=freeze_arguments({"x-message-ttl": 60_000, "x-dead-letter-exchange": "exit"}),
                ),
                QueueSpec("work"),
            ),
            routes=(
                RouteSpec(("a",), (Target("queue", "work"),), "exit"),
                RouteSpec(("a",), (Target("queue", "wait"),), "orders"),
            ),
        )
    )


def test_keys_and_targets_that_go_together_are_one_route() -> None:
    """A file for people: no route is said twice."""
    bindings = [Binding("exit", "queue", name, key) for name in ("work", "other") for key in ("a", "b")]
    live = host(Exchange("exit"), wait(), Queue("work"), Queue("other"), *bindings)

    targets = (Target("queue", "other"), Target("queue", "work"))
    assert adopted(live).spec.routes == (RouteSpec(("a", "b"), targets, "exit"),)


def test_a_fanout_exchange_has_one_route_without_key() -> None:
    """It looks at nothing, whatever its bindings say."""
    bindings = (Binding("exit", "queue", "work", "a"), Binding("exit", "queue", "work", "b", (("c", "d"),)))
    live = host(Exchange("exit", "fanout"), wait(), Queue("work"), *bindings)

    assert adopted(live).spec.routes == (RouteSpec((), (Target("queue", "work"),), "exit"),)
    assert plan_of_file(live).is_empty


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (Exchange("exit", "x-random"), "the file knows no exchanges of type x-random"),
        (Exchange("exit", alternate=".."), "its alternate exchange is '..'"),
        (Exchange("exit", extra=(("alternate-exchange", 5),)), "its alternate exchange is not a name"),
        (Exchange("exit", extra=(("x-list", (1, 2)),)), "its argument x-list is a list or a table"),
        (Queue("work", Settings(type="stream")), "the file knows no queues of type stream"),
        (Queue("work", extra=(("x-table", Table(())),)), "its argument x-table is a list or a table"),
        (Queue("work", extra=(("other", 1),)), "its argument 'other' does not begin with x-"),
        (Queue("work", extra=(("x-max-length", "10"),)), "its argument x-max-length is the text '10'"),
        (Queue("work", extra=(("x-ratio", 0.5),)), "its argument x-ratio is 0.5"),
        (Queue("work", extra=(("x-queue-type", 5),)), "its argument x-queue-type is 5"),
    ],
)
def test_what_the_file_cannot_say_is_marked_existing(odd: Exchange | Queue, reason: str) -> None:
    """The object is checked, and never touched."""
    others = [thing for thing in (Exchange("exit"), Queue("work")) if type(thing) is not type(odd)]
    live = host(odd, *others, wait(), OUT)

    [note] = adopted(live).notes

    kind = "exchange" if isinstance(odd, Exchange) else "queue"
    assert note == Note(f"{kind} {odd.name}", reason, is_left_out=False)
    assert plan_of_file(live).is_empty


@pytest.mark.parametrize(
    ("kind", "binding", "reason"),
    [
        ("topic", Binding("exit", "queue", "work", "a", (("b", "c"),)), "it has arguments, which a topic exchange"),
        ("direct", Binding("exit", "queue", "work", "a.*"), "'a.*' looks like a pattern"),
        ("headers", Binding("exit", "queue", "work", "a", (("b", "c"),)), "it has the key 'a'"),
        ("headers", Binding("exit", "queue", "work", "", (("b", None),)), "its argument b is None"),
        ("x-random", Binding("exit", "queue", "work", "a", (("b", "c"),)), "it has the key 'a' beside"),
        ("headers", Binding("exit", "queue", "work", "", (("b", 1), ("x-match", "most"))), "its x-match is the text"),
        ("topic", Binding("exit", "queue", "private"), "the queue is exclusive"),
        ("topic", Binding("exit", "exchange", "amq.gone"), "exchange amq.gone can't be listed"),
        ("topic", Binding("exit", "queue", "amq.gen-1"), "queue amq.gen-1 can't be listed"),
        ("topic", Binding("exit", "queue", "two\nlines"), "queue two\nlines can't be listed"),
        ("topic", Binding("exit", "queue", ".."), "queue .. can't be listed"),
        ("topic", Binding("exit", "queue", "delay.verify.queue"), "queue delay.verify.queue can't be listed"),
    ],
)
def test_bindings_that_no_route_can_say_are_left_out(kind: str, binding: Binding, reason: str) -> None:
    """They stay on the broker as they are."""
    live = host(
        Exchange("exit", kind),
        wait(),
        *map(Queue, ("work", "amq.gen-1", "two\nlines", "..", "delay.verify.queue")),
        binding,
    )

    notes = adopted(live).notes

    assert notes[-1].reason.startswith(reason)
    assert notes[-1].is_left_out
    assert plan_of_file(live).is_empty


def test_an_alternate_of_the_brokers_own_is_written_as_it_is() -> None:
    """It is there on every broker, and not listed."""
    live = host(Exchange("exit", alternate="amq.fanout"), Queue("work"), wait(), OUT)

    assert adopted(live).spec.exchanges == (ExchangeSpec("exit", alternate="amq.fanout"),)
    assert plan_of_file(live).is_empty


def test_a_queue_that_a_policy_bends_is_marked_existing() -> None:
    """The file can't ask for what the arguments say while a policy says something else."""
    policy = Policy("shorter", "^wait$", "queues", 3, freeze_arguments({"message-ttl": 5}))
    live = host(wait(), policy)

    made = adopted(live)

    assert made.spec.queues == (QueueSpec("wait", existing=True),)
    assert made.notes == (Note("queue wait", "policy shorter (priority 3) changes what it does", is_left_out=False),)
    assert plan_of_file(live).is_empty


SHOP = Spec(
    (
        LevelSpec("1m", Duration(60_000), WaitSpec()),
        LevelSpec("slow", Duration(300_000), WaitSpec("quorum", None, 5, "reject-publish", at_least_once=True)),
    ),
    exchanges=(ExchangeSpec("fan", "fanout"), ExchangeSpec("orders"), ExchangeSpec("tiers", "headers")),
    queues=(QueueSpec("orders.queue"), QueueSpec("parked", "quorum")),
    routes=(
        RouteSpec(("a",), (Target("queue", "orders.queue"),), "fan", "1m"),
        RouteSpec(("a", "b"), (Target("queue", "orders.queue"), Target("queue", "parked")), "orders", "slow"),
        RouteSpec(("a",), (Target("queue", "orders.queue"),), "tiers", "1m", (("tier", "gold"), ("x-match", "all"))),
        RouteSpec(("c",), (Target("exchange", "orders"),), None, "1m"),
        RouteSpec(("d",), (Target("queue", "parked"),), "orders"),
    ),
    retries=(RetrySpec("orders.queue", ("1m",), "parked"),),
    policy_priority=4,
)


@pytest.mark.parametrize("home", HOMES)
@pytest.mark.parametrize("prefix", ["", "shop."])
@pytest.mark.parametrize("is_record_lost", [False, True])
def test_delayctls_own_shape_is_read_as_levels(home: SettingsHome, prefix: str, is_record_lost: bool) -> None:
    """From a broker that delayctl applied a file to, the same objects come back as levels."""
    desired = expand(replace(SHOP, prefix=prefix, settings=home))
    live = replace(live_of(desired), record=None) if is_record_lost else live_of(desired)

    made = adopted(live, prefix=prefix)

    assert own_prefixes(live) == (prefix,)
    assert made.spec.levels == SHOP.levels
    assert made.notes == ()
    assert expand(made.spec) == desired
    assert plan_of_file(live, prefix=prefix).is_empty


def test_a_level_out_of_shape_is_listed_beside_the_others() -> None:
    """What is not as delayctl makes it is described as what it is."""
    own = live_of(expand(replace(SHOP, retries=())))
    odd = Queue(
        "delay.odd.queue", Settings(ttl=Duration(5), dead_letter_exchange="delay.exchange", dead_letter_key="a")
    )
    live = replace(own, queues={**own.queues, odd.name: odd}, record=None)

    made = adopted(live)

    assert [level.name for level in made.spec.levels] == ["1m", "slow"]
    assert odd.name in {queue.name for queue in made.spec.queues}
    assert plan_of_file(live).is_empty


@pytest.mark.parametrize(
    "stranger",
    [
        Binding("orders", "queue", "delay.1m.queue", "past.the.entrance"),
        Binding("orders", "exchange", "delay.exchange", "past.the.delay"),
        Binding("orders", "exchange", "delay.1m.exchange", "no.way.out"),
    ],
)
def test_bindings_past_the_levels_are_said_object_by_object(stranger: Binding) -> None:
    """A route can't name what the levels bring with them, so that the file does without levels."""
    own = live_of(expand(SHOP))
    live = replace(own, bindings=own.bindings | {stranger}, record=None)

    made = adopted(live)

    assert made.spec.levels == ()
    assert stranger in expand(made.spec).bindings
    assert plan_of_file(live).is_empty


def test_a_strangers_binding_at_an_entrance_stays_unsaid() -> None:
    """It has nothing to do with the delay; the plan of the file warns of it."""
    own = live_of(expand(SHOP))
    live = replace(own, bindings=own.bindings | {Binding("delay.1m.exchange", "queue", "parked")}, record=None)

    plan = plan_of_file(live)

    assert adopted(live).spec.levels == SHOP.levels
    assert plan.is_empty
    assert any("reaches parked without any delay" in warning for warning in plan.warnings)


def test_names_that_look_like_a_template_are_harmless() -> None:
    """A header is a comment to YAML, but text to Jinja2."""
    live = host(
        Exchange("{{ exit }}"), wait("{% for %}", "{{ exit }}"), Queue("{# work"), Queue("a\x85b"),
        Binding("{{ exit }}", "queue", "{# work", "{{ key }}", (("{{", 1),)),
        Binding("{{ exit }}", "queue", "a\x85b", "{{ key }}"),
    )  # fmt: skip

    assert plan_of_file(live).is_empty


def unfinished(live: Live) -> bool:
    """Say whether the record of an earlier run holds something that no file could say."""
    record = live.record or Record()
    keyless = {exchange.name for exchange in live.exchanges.values() if exchange.type in KEYLESS_TYPES}
    headers = {exchange.name for exchange in live.exchanges.values() if exchange.type == "headers"}
    owned = record.bindings & live.bindings
    return (
        bool(record.restore - live.bindings)
        or bool(record.policies & {policy.name for policy in live.policies})
        # A binding by key to what has become an exchange that looks at no keys, or by headers to one that looks at none.
        or any(binding.key and binding.source in keyless for binding in owned)
        or any(binding.arguments and binding.source not in headers for binding in owned)
    )


@given(st.data(), st.booleans())
def test_whatever_people_did_the_file_changes_nothing(data: st.DataObject, everything: bool) -> None:
    """A broker in any state that applies, accidents and people leave it in."""
    live = data.draw(brokers(data.draw(aims()))).live()

    assert plan_of_file(live, everything=everything).is_empty or unfinished(live)
    assert plan_of_file(replace(live, record=None), everything=everything).is_empty


@settings(max_examples=50)
@given(specs(), st.booleans())
def test_whatever_was_applied_comes_back(spec: Spec, everything: bool) -> None:
    """Any file, applied and lost."""
    types = {exchange.name: exchange.type for exchange in spec.exchanges}
    # Of an exchange that may be of any type the broker here makes a topic exchange, which knows no headers.
    assume(all(types[route.source or ""] == "headers" for route in spec.routes if route.headers))
    live = live_of(expand(spec))

    assert plan_of_file(live, prefix=spec.prefix, everything=everything).is_empty
    assert plan_of_file(replace(live, record=None), prefix=spec.prefix, everything=everything).is_empty


_names = st.sampled_from(
    [
        "a",
        "b",
        "delay.exchange",
        "delay.1m.queue",
        "delay.1m.exchange",
        "delay.1m.next.queue",
        "delay.move.exchange",
        "amq.gen-1",
        "amq.topic",
        "x\ny",
        "..",
        *AWKWARD,
    ]
)  # fmt: skip
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(AWKWARD)
_values: st.SearchStrategy[Value] = _scalars | st.just((1, "a")) | st.just(Table((("a", 1),)))
_words = st.sampled_from(
    ["x-match", "x-a", "a", "x-message-ttl", "x-queue-type", "x-max-length", "alternate-exchange", "{{", ""]
)
_arguments = st.dictionaries(_words, _values, max_size=2).map(freeze_arguments)
_settings = st.builds(
    Settings,
    type=st.sampled_from([None, "classic", "quorum", "stream"]),
    ttl=st.none() | st.builds(Duration, st.integers(0, 2**62)),
    max_length=st.none() | st.integers(0, 5),
    overflow=st.none() | st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"]),
    dead_letter_exchange=st.none() | st.just("") | _names,
    dead_letter_key=st.none() | _names,
    dead_letter_strategy=st.none() | st.just("at-least-once"),
)
_exchanges = st.builds(
    Exchange, _names, st.sampled_from(["topic", "direct", "fanout", "headers", "x-random"]), st.none() | st.just("") | _names,
    st.booleans(), st.booleans(), st.booleans(), _arguments.filter(lambda a: not isinstance(dict(a).get("alternate-exchange"), str)),
)  # fmt: skip
_queues = st.builds(
    Queue, _names, _settings, st.booleans(), st.booleans(),
    _arguments.filter(lambda a: all(not isinstance(v, int | str) or n in ("x-a", "a", "x-match", "{{", "") for n, v in a)),
)  # fmt: skip
_bindings = st.builds(
    Binding, _names, st.sampled_from(["queue", "exchange"]), _names, st.sampled_from(["", "a", "a.*", "#", *AWKWARD]), _arguments
)  # fmt: skip
_DEFINITIONS: tuple[dict[str, object], ...] = (
    {"message-ttl": 5},
    {"max-length": 1},
    {"dead-letter-exchange": "a", "message-ttl": 9},
)
_policies = st.builds(
    Policy, st.sampled_from(["p", "delay.1m.policy"]), st.sampled_from([".*", "^delay", "("]), st.sampled_from(["queues", "all", "exchanges"]),
    st.integers(0, 2), st.sampled_from(_DEFINITIONS).map(freeze_arguments),
)  # fmt: skip


@given(st.lists(_exchanges | _queues | _bindings | _policies, max_size=12), st.booleans())
def test_whatever_is_there_the_file_changes_nothing(
    objects: list[Exchange | Queue | Binding | Policy], everything: bool
) -> None:
    """Names, arguments and bindings that no sane person makes."""
    assert plan_of_file(host(*objects), everything=everything).is_empty


WAITS = BrokerWaits(Duration(200), Duration(500), 3)
BY_BROKER = Spec(
    (LevelSpec("1m", Duration(60_000), WaitSpec()),),
    prefix="p.",
    queues=(QueueSpec("orders.dlq", "classic"), QueueSpec("orders.queue", "quorum")),
    retries=(RetrySpec("orders.queue", (), "orders.dlq", WAITS),),
)


@pytest.mark.parametrize("record", [Record(), None])
def test_retries_that_wait_in_their_queue_are_told(record: Record | None) -> None:
    """All of it is on the broker: how long, how often, and where it ends."""
    live = replace(live_of(expand(BY_BROKER)), record=record)

    assert adopted(live, prefix="p.").spec == replace(BY_BROKER, vhost="shop")


@pytest.mark.parametrize(
    "other",
    [
        {"retry_type": "all"},
        {"dead_letter_strategy": None},
        {"dead_letter_key": "p.delay.park.gone.dlq"},
        {"delivery_limit": 2_000},
        {"retry_max": Duration(100)},
        {"retry_min": None},
    ],
)
def test_retries_that_no_file_can_say_are_arguments(other: dict[str, Any]) -> None:
    """What differs in any way from what the file would mean is listed as it is, and stays."""
    live = live_of(expand(BY_BROKER))
    queue = live.queues["orders.queue"]
    odd = replace(queue, settings=replace(queue.settings, **other))
    live = replace(live, queues={**live.queues, "orders.queue": odd}, record=None)

    assert adopted(live, prefix="p.").spec.retries == ()
    assert plan_of_file(live, prefix="p.").is_empty


def test_retries_that_park_in_a_circle_are_arguments() -> None:
    """The file takes no circles, and an import has to describe what is there."""
    there = replace(
        BY_BROKER,
        queues=(QueueSpec("orders.dlq", "quorum"), QueueSpec("orders.queue", "quorum")),
        retries=(*BY_BROKER.retries, RetrySpec("orders.dlq", (), "orders.queue", WAITS)),
    )
    live = live_of(expand(there))

    assert adopted(live, prefix="p.").spec.retries == ()
    assert plan_of_file(live, prefix="p.").is_empty
