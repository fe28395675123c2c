"""What a file means; what is wrong with files is in the corpus."""

import time
from textwrap import dedent

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.errors import InvalidTopology
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec
from delayctl.topology.rate import Rate
from delayctl.topology.spec import (
    DEFAULT_LEVELS,
    ROCKETMQ_LEVELS,
    ExchangeSpec,
    GrantSpec,
    LevelSpec,
    QueueSpec,
    RetrySpec,
    RouteSpec,
    Silence,
    Spec,
    Target,
    WaitSpec,
)

USUAL = tuple(LevelSpec(name, Duration.parse(name), WaitSpec()) for name in DEFAULT_LEVELS)


def read(text: str, **values: object) -> Spec:
    """The Spec of a file that begins with its version."""
    return read_spec(f"version: 1\n{dedent(text)}", values, file="topology.yaml")


def level(name: str, ttl: str | None = None, **wait: object) -> LevelSpec:
    """A level with the defaults, but for what is given."""
    return LevelSpec(name, Duration.parse(ttl or name), WaitSpec(**wait))  # type: ignore[arg-type]


def messages_of(text: str) -> list[str]:
    """What is wrong with a file that begins with its version."""
    with pytest.raises(InvalidTopology) as caught:
        read(text)
    return [problem.message for problem in caught.value.problems]


def test_the_shortest_file_has_the_usual_levels() -> None:
    """A version is all that is needed."""
    assert read("") == Spec(levels=USUAL)


def test_the_whole_example_is_read() -> None:
    """The file of the documentation, field by field."""
    spec = read(
        """\
        vhost: /
        prefix: shop.
        delay: {levels: [15m, 1m], settings: policy, policy_priority: 5}
        exchanges: {orders.exchange: {type: direct, alternate: spare.exchange}}
        queues: {orders.queue: {type: quorum, arguments: {x-delivery-limit: 5}}}
        routes: [{from: orders.exchange, key: order.created, delay: 15m, to: orders.queue}]
        retry: {orders.queue: {levels: [1m], max: 2, park: orders.dlq}}
        """
    )

    assert spec == Spec(
        vhost="/",
        prefix="shop.",
        settings="policy",
        policy_priority=5,
        levels=(level("1m"), level("15m")),
        exchanges=(ExchangeSpec("orders.exchange", "direct", "spare.exchange"),),
        queues=(QueueSpec("orders.dlq"), QueueSpec("orders.queue", "quorum", arguments=(("x-delivery-limit", 5),))),
        routes=(RouteSpec(("order.created",), (Target("queue", "orders.queue"),), "orders.exchange", "15m"),),
        retries=(RetrySpec("orders.queue", ("1m", "1m"), "orders.dlq"),),
    )


def test_values_fill_in_the_template() -> None:
    """Templates come first, YAML second."""
    assert read("vhost: {{ region }}", region="eu") == Spec(levels=USUAL, vhost="eu")


@pytest.mark.parametrize("levels", ["rocketmq", ROCKETMQ_LEVELS, f"[{', '.join(ROCKETMQ_LEVELS.split())}]"])
def test_rocketmq_levels_have_three_spellings(levels: str) -> None:
    """The preset, RocketMQ's own string, and the list."""
    assert read(f"delay: {{levels: {levels}}}") == Spec(levels=tuple(level(name) for name in ROCKETMQ_LEVELS.split()))


def test_a_level_takes_over_what_it_does_not_say() -> None:
    """Each level is based on delay.queue."""
    spec = read(
        """\
        delay:
          queue: {type: quorum, max_length: 5}
          levels:
            1m:
            slow: {ttl: 2h, max_length: unlimited, overflow: reject-publish}
        """
    )

    assert spec.levels == (
        level("1m", type="quorum", max_length=5),
        level("slow", "2h", type="quorum", max_length=None, overflow="reject-publish"),
    )


def test_the_safe_profile_is_three_settings() -> None:
    """Quorum, at-least-once, reject-publish; the limits stay as they are."""
    spec = read("delay: {queue: {max_length: 5}, levels: {1m: {profile: safe}}}")

    safe = WaitSpec("quorum", 5, None, "reject-publish", at_least_once=True)
    assert spec.levels == (LevelSpec("1m", Duration.parse("1m"), safe),)


@pytest.mark.parametrize(
    ("delay", "name"), [("slow", "slow"), ("120m", "slow"), ("2h", "slow"), ("1", "1"), ("1s", "1")]
)
def test_a_delay_names_a_level_or_its_duration(delay: str, name: str) -> None:
    """However the duration is written."""
    spec = read(
        f"""\
        delay: {{levels: {{slow: {{ttl: 2h}}, 1: {{ttl: 1s}}}}}}
        routes: [{{key: k, delay: {delay}, to: q}}]
        """
    )

    assert spec.routes == (RouteSpec(("k",), (Target("queue", "q"),), None, name),)


def test_a_name_goes_before_a_duration() -> None:
    """A level may be called 5m and wait otherwise; who asks for 5m gets it."""
    spec = read(
        """\
        delay: {levels: {5m: {ttl: 10m}, usual: {ttl: 5m}}}
        routes: [{key: k, delay: 5m, to: q}]
        retry: {q: {levels: [5m], max: 1, park: p}}
        """
    )

    assert (spec.routes[0].level, spec.retries[0].waits) == ("5m", ("5m",))
    assert [item.name for item in spec.levels] == ["usual", "5m"]


def test_mentioned_objects_are_declared_with_the_defaults() -> None:
    """Only what differs from them must be listed."""
    spec = read("routes: [{from: e, key: k, delay: 1m, to: [q, {exchange: f}]}]")

    assert (spec.exchanges, spec.queues) == ((ExchangeSpec("e"), ExchangeSpec("f")), (QueueSpec("q"),))


def test_an_existing_exchange_may_be_of_any_type() -> None:
    """Its type is checked only where it is given."""
    spec = read("exchanges: {a: {existing: true}, b: {existing: true, type: fanout}, c: {existing: false}}")

    assert spec.exchanges == (
        ExchangeSpec("a", None, existing=True),
        ExchangeSpec("b", "fanout", existing=True),
        ExchangeSpec("c"),
    )


def test_what_is_said_twice_counts_once() -> None:
    """Keys, targets and whole routes."""
    spec = read("routes: [{key: [k, k], delay: 1m, to: [q, {queue: q}]}, {key: k, delay: 60s, to: q}]")

    assert spec.routes == (RouteSpec(("k",), (Target("queue", "q"),), None, "1m"),)


@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        ("levels: [1m, 5m]", ("1m", *["5m"] * 15)),
        ("levels: [1m, 5m], max: 3", ("1m", "5m", "5m")),
        ("levels: [1m, 5m, 15m], max: 2", ("1m", "5m")),
        ("levels: [60s], max: 1", ("1m",)),
        ("levels: 1s 5s 10s 30s, max: 3", ("10s", "30s", "30s")),
        ("levels: 1s 5s, max: 2", ("5s", "5s")),
        ("levels: rocketmq, max: 2", ("10s", "30s")),
        ("", tuple(ROCKETMQ_LEVELS.split()[2:])),
    ],
)
def test_a_retry_waits_level_after_level(retry: str, waits: tuple[str, ...]) -> None:
    """A list from its first level, RocketMQ's from the third; beyond the last, the last again."""
    spec = read(f"retry: {{q: {{{retry}{', ' if retry else ''}park: p}}}}")

    assert spec.retries == (RetrySpec("q", waits, "p"),)


def test_a_retry_adds_the_levels_it_waits_at() -> None:
    """With the defaults, and only those that are used."""
    spec = read("delay: {levels: [1m], queue: {max_length: 5}}\nretry: {q: {levels: [1s, 1m, 2h], max: 2, park: p}}")

    assert spec.levels == (level("1s", max_length=5), level("1m", max_length=5))


def test_a_broken_level_is_reported_once() -> None:
    """Those who use it need not repeat it."""
    text = """\
        delay: {levels: {slow: {}}}
        routes: [{key: k, delay: slow, to: q}]
        retry: {q: {levels: [slow], park: p}}
        """

    assert messages_of(text) == ["level 'slow' has no ttl"]


def test_problems_come_in_the_order_of_the_file() -> None:
    """Whichever section is read first."""
    text = "retry: 5\nroutes: 5\nqueues: 5\nexchanges: 5\ndelay: 5\nvhost: 5\n"

    assert [message.split()[0] for message in messages_of(text)] == [
        "retry",
        "routes",
        "queues",
        "exchanges",
        "delay",
        "vhost",
    ]


def test_an_alias_repeats_its_problem_once() -> None:
    """One mistake in the file is one problem, however often it is used."""
    text = "queues: {a: &a {typ: quorum}, b: *a}\nroutes: [&r {key: k, delay: 7m, to: a}, *r, *r]"

    assert messages_of(text) == [
        "queue 'a' has no key 'typ' (did you mean 'type'?)",
        "queue 'b' has no key 'typ' (did you mean 'type'?)",
        "delay must be a level, not '7m'",
    ]


def test_thousands_of_objects_are_read_in_no_time() -> None:
    """The time grows with the file: what a plan of 4,000 objects takes is not spent on reading it."""
    text = """\
        exchanges: {orders.exchange: {}}
        queues:
        {%- for i in range(1000) %}
          listed.{{ i }}.queue: {type: quorum}
        {%- endfor %}
        routes:
        {%- for i in range(1000) %}
          - {from: orders.exchange, key: order.{{ i }}, delay: 15m, to: [listed.{{ i }}.queue, other.{{ i }}.queue]}
        {%- endfor %}
        """

    started = time.process_time()
    topology = expand(read(text))
    took = time.process_time() - started

    assert len(list(topology)) == 5_014
    assert took < 1


@pytest.mark.parametrize("none", ["none", '"none"'])
def test_a_file_can_do_without_delays(none: str) -> None:
    """Then even the names that delayctl would take are free."""
    spec = read(f"delay: {none}\nexchanges: {{delay.exchange: {{}}}}\nqueues: {{delay.unrouted.queue: {{}}}}")

    assert spec == Spec((), exchanges=(ExchangeSpec("delay.exchange"),), queues=(QueueSpec("delay.unrouted.queue"),))


def test_nothing_is_not_none() -> None:
    """A section that was left empty means the usual levels."""
    assert read("delay:") == read("delay: null") == Spec(levels=USUAL)


def test_lifetimes_and_arguments_are_read() -> None:
    """Of exchanges and of queues."""
    spec = read(
        """\
        delay: none
        exchanges: {e: {durable: false, auto_delete: true, internal: true, arguments: {x-b: "5", x-a: 5}}}
        queues: {q: {durable: false, auto_delete: true}}
        """
    )

    assert spec.exchanges == (
        ExchangeSpec("e", durable=False, auto_delete=True, internal=True, arguments=(("x-a", 5), ("x-b", "5"))),
    )
    assert spec.queues == (QueueSpec("q", durable=False, auto_delete=True),)


@pytest.mark.parametrize(
    ("route", "keys", "headers"),
    [
        ("{from: h, headers: {b: 1, a: true}, to: q}", (), (("a", True), ("b", 1))),
        ("{from: h, headers: {x-match: any, a: x}, key: k, to: q}", ("k",), (("a", "x"), ("x-match", "any"))),
        ("{from: h, headers: {}, to: q}", (), ()),
        ("{from: h, headers: , to: q}", (), ()),
        ("{from: any, headers: {a: x}, to: q}", (), (("a", "x"),)),
        ("{from: f, to: q}", (), ()),
        ("{from: f, key: k, to: q}", ("k",), ()),
        ('{from: t, key: "", to: q}', ("",), ()),
        ("{from: t, key: ['', a, ''], to: q}", ("", "a"), ()),
    ],
)
def test_a_route_looks_for_keys_or_headers(route: str, keys: tuple[str, ...], headers: tuple[object, ...]) -> None:
    """As its source does; an empty key is one that was written as such."""
    types = "{h: {type: headers}, any: {existing: true}, f: {type: fanout}, t: {}}"

    (found,) = read(f"exchanges: {types}\nroutes: [{route}]").routes

    assert (found.keys, found.headers) == (keys, headers)


def test_an_expected_rate_is_taken_over_by_levels() -> None:
    """Unless a level says otherwise."""
    spec = read("delay: {queue: {expected_rate: 5/s}, levels: {1m: {}, 5m: {expected_rate: 60/h}}}")

    assert [level.wait.expected_rate for level in spec.levels] == [Rate.parse("5/s"), Rate.parse("1/m")]


def test_permissions_are_roles_held_to_objects_or_not() -> None:
    """One name needs no list; delayctl's own entrances can be named as well."""
    spec = read(
        """\
        routes: [{from: e, key: k, delay: 5m, to: q}]
        permissions:
          shop: publisher
          web: {role: publisher, exchanges: [e, delay.5m.exchange, e]}
          billing: {role: consumer, queues: q}
          ops: {role: operator}
        """
    )

    assert spec.grants == (
        GrantSpec("shop", "publisher"),
        GrantSpec("web", "publisher", ("e", "delay.5m.exchange")),
        GrantSpec("billing", "consumer", ("q",)),
        GrantSpec("ops", "operator"),
    )


def test_lint_is_told_what_is_fine_and_how_much_memory_there_is() -> None:
    """A reason is one line, however it was written."""
    spec = read(
        """\
        lint:
          memory: 4GiB
          ignore:
            - {rule: D101, at: q, reason: it is}
            - {rule: D101, at: q, reason: it is}
            - rule: D205
              reason: |
                two
                lines
        """
    )

    assert (spec.silences, spec.memory) == ((Silence("D101", "it is", "q"), Silence("D205", "two lines")), 4 * 2**30)


def test_everything_knows_its_line() -> None:
    """In the file, not in the text that a template makes of it."""
    spec = read(
        """\
        {% for name in ["a", "b"] %}{% endfor %}
        delay:
          levels:
            1m: {}
        exchanges:
          e: {}
        queues:
          {{ "q: {}" }}
        routes:
          - from: e
            key: k
            to: used
        retry:
          q: {levels: [1m], park: p}
        permissions:
          shop: publisher
        lint:
          ignore:
            - {rule: D101, reason: it is}
        """
    )

    assert [level.line for level in spec.levels] == [5]
    assert [exchange.line for exchange in spec.exchanges] == [7]
    assert {queue.name: queue.line for queue in spec.queues} == {"p": 15, "q": 9, "used": 13}
    parts = (spec.routes[0].line, spec.retries[0].line, spec.grants[0].line, spec.silences[0].line)
    assert parts == (11, 15, 17, 20)
