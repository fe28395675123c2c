"""A Spec as a file that people like to read; that it is read back the same is a property."""

from textwrap import dedent

import pytest
from delayctl.topology.layout import entry, scalar
from delayctl.topology.parse import read_spec
from delayctl.topology.write import write_spec


def rewritten(text: str) -> str:
    """A file, read and written again."""
    return write_spec(read_spec(dedent(text), {}, file="topology.yaml"))


def test_the_example_is_written_as_people_would() -> None:
    """Sections apart, one object a line, defaults left out."""
    text = """\
        version: 1
        vhost: /
        prefix: shop.

        delay:
          levels: [1m, 5m, 15m]
          queue: {type: quorum, max_length: 5000}
          settings: policy

        exchanges:
          legacy.exchange: {existing: true}
          orders.exchange: {}
          site.exchange: {type: direct}

        queues:
          orders.dlq: {}
          orders.queue: {type: quorum, arguments: {x-delivery-limit: 5}}

        routes:
          - {from: orders.exchange, key: order.created, delay: 15m, to: orders.queue}
          - {key: ["order.*", "#"], delay: 5m, to: [orders.queue, {exchange: site.exchange}]}

        retry:
          orders.queue: {levels: [1m, 5m], max: 5, park: orders.dlq}
        """

    assert rewritten(text) == dedent(text)


def test_a_file_without_delays_is_written_as_people_would() -> None:
    """With all that a hand-made topology has."""
    text = """\
        version: 1

        delay: none

        exchanges:
          audit.exchange: {type: headers}
          events.exchange: {type: fanout, durable: false, auto_delete: true, internal: true}
          orders.exchange: {arguments: {x-owner: shop}}

        queues:
          audit.queue: {durable: false, auto_delete: true, arguments: {x-max-length: 5}}
          orders.queue: {}

        routes:
          - {from: audit.exchange, headers: {kind: order, x-match: any}, to: audit.queue}
          - {from: audit.exchange, headers: {}, key: all, to: audit.queue}
          - {from: events.exchange, to: audit.queue}
          - {from: orders.exchange, key: "", to: orders.queue}

        permissions:
          billing: {role: consumer, queues: orders.queue}
          ops: operator
          shop: {role: publisher, exchanges: [events.exchange, orders.exchange]}

        lint:
          memory: 4GiB
          ignore: [{rule: D101, at: audit.queue, reason: "it is fine, really"}, {rule: D205, reason: fine}]
        """

    assert rewritten(text) == dedent(text)


def test_what_is_mentioned_is_listed() -> None:
    """So that a misspelling in a later edit is seen."""
    assert rewritten("{version: 1, routes: [{key: k, delay: 1m, to: q}]}") == dedent("""\
        version: 1

        delay:
          levels: [1m, 5m, 15m]

        queues:
          q: {}

        routes:
          - {key: k, delay: 1m, to: q}
        """)


@pytest.mark.parametrize(
    ("delay", "written"),
    [
        ("{}", "  levels: [1m, 5m, 15m]\n"),
        ("{levels: rocketmq}", "  levels: rocketmq\n"),
        ("{levels: {5m: {ttl: 10m}}}", "  levels: {5m: {ttl: 10m}}\n"),
        ("{queue: {profile: safe}, levels: [1m]}", "  levels: [1m]\n  queue: {profile: safe}\n"),
        ("{levels: {1m: {}, 2m: {profile: safe}}}", "  levels: {1m: {}, 2m: {profile: safe}}\n"),
        ("{queue: {max_length: unlimited}, levels: [1m]}", "  levels: [1m]\n  queue: {max_length: unlimited}\n"),
        (
            "{queue: {expected_rate: 5/s}, levels: [1m, 5m]}",
            "  levels: [1m, 5m]\n  queue: {expected_rate: 5/s}\n",
        ),
        (
            "{levels: {1m: {}, 5m: {expected_rate: 90/m}}}",
            "  levels: {1m: {}, 5m: {expected_rate: 90/m}}\n",
        ),
        (
            "{levels: {1m: {max_length: 5}, 2m: {max_length: 5}, 3m: {}}}",
            "  levels: {1m: {}, 2m: {}, 3m: {max_length: 1000000}}\n  queue: {max_length: 5}\n",
        ),
    ],
)
def test_what_levels_have_in_common_is_said_once(delay: str, written: str) -> None:
    """A level says only what sets it apart."""
    assert rewritten(f"version: 1\ndelay: {delay}") == f"version: 1\n\ndelay:\n{written}"


@pytest.mark.parametrize(
    ("retry", "written"),
    [
        ("{park: p}", "{levels: rocketmq, park: p}"),
        ("{levels: rocketmq, max: 3, park: p}", "{levels: rocketmq, max: 3, park: p}"),
        ("{levels: [1m, 5m, 5m], max: 3, park: p}", "{levels: [1m, 5m], max: 3, park: p}"),
        ("{levels: [5m], park: p}", "{levels: [5m], max: 16, park: p}"),
    ],
)
def test_a_retry_is_written_without_repetition(retry: str, written: str) -> None:
    """The last level stands for all that follow."""
    assert rewritten(f"version: 1\nretry: {{q: {retry}}}").splitlines()[-1] == f"  q: {written}"


def test_a_long_route_is_written_as_a_block() -> None:
    """What does not fit on a line gets lines of its own."""
    keys = [f"orders.europe.created.{i}" for i in range(5)]
    text = f"version: 1\nroutes: [{{from: e, key: [{', '.join(keys)}], delay: 1m, to: q}}]"

    listed = "\n".join(f"      - {key}" for key in keys)
    assert rewritten(text).endswith(f"routes:\n  - from: e\n    key:\n{listed}\n    delay: 1m\n    to: q\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("orders.queue", "orders.queue"),
        ("/", "/"),
        ("5m", "5m"),
        ("5", '"5"'),
        ("true", '"true"'),
        ("~", '"~"'),
        ("order.#", '"order.#"'),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("größe", '"größe"'),
        ('say "hi"\\', '"say \\"hi\\"\\\\"'),
        ("a\nb\x00\x85\u2028\ufeff", '"a\\nb\\u0000\\u0085\\u2028\\ufeff"'),
        ("\U000e0001", '"\\U000e0001"'),
        ("{{ a }}", '"\\x7b{ a }}"'),
        ("{{{% a", '"\\x7b\\x7b\\x7b% a"'),
        (5, "5"),
        (True, "true"),
    ],
)
def test_a_scalar_is_quoted_where_it_must_be(value: str | int, written: str) -> None:
    """Neither YAML nor Jinja2 may see anything in it but itself."""
    assert scalar(value) == written


def test_an_empty_mapping_stays_on_its_line() -> None:
    """However long its name is."""
    assert entry("x" * 200, {}) == [f"{'x' * 200}: {{}}"]
