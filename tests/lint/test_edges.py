"""What the rules say of files that are not as plain as those of `files/`, and what they leave in peace."""

from dataclasses import replace

import pytest
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.facts import Facts, Waiting
from delayctl.topology.findings import Severity
from delayctl.topology.lint import lint
from delayctl.topology.live import Live
from delayctl.topology.model import Queue, Settings, freeze_arguments
from delayctl.topology.parse import read_spec
from delayctl.topology.version import parse_version
from delayctl.topology.version_bugs import BUGS

from tests.lint.brokers import policy

WAIT = "{{arguments: {{x-message-ttl: 1000, x-max-length: 1000000, x-dead-letter-exchange: {exit}}}}}"


def found(text: str, live: Live | None = None, facts: Facts | None = None) -> list[tuple[str, str, str]]:
    """Code, object and message of every error and warning."""
    spec = read_spec(f"version: 1\n{text}", {}, file="topology.yaml")
    report = lint(spec, expand(spec), live=live, facts=facts)
    return [(f.code, f.at, f.message) for f in report.of(Severity.ERROR, Severity.WARNING)]


def wait(exit: str) -> str:
    """A queue of one's own to wait in."""
    return WAIT.format(exit=exit)


def test_a_cycle_of_three_own_queues_is_found_once() -> None:
    """However long it is, the way around is told."""
    text = (
        "delay: none\nqueues:\n"
        f"  a.wait: {wait('b.exchange')}\n  b.wait: {wait('c.exchange')}\n  c.wait: {wait('a.exchange')}\n"
        'routes:\n  - {from: a.exchange, key: "x.#", to: a.wait}\n'
        '  - {from: b.exchange, key: "#", to: b.wait}\n  - {from: c.exchange, key: k, to: c.wait}\n'
    )

    assert [(code, at) for code, at, _ in found(text)][:1] == [("D101", "b.wait")]
    cycle = found(text.replace("key: k", 'key: "#"'))[0]
    assert cycle[:2] == ("D103", "a.wait")
    assert "a.wait → b.wait → c.wait → a.exchange → a.wait" in cycle[2]
    assert "after 3s" in cycle[2]


def test_a_queue_that_expires_into_itself_by_its_name_is_a_cycle() -> None:
    """The default exchange leads back by the key that led there."""
    assert found(f"delay: none\nqueues:\n  a.wait: {wait(chr(34) * 2)}\n")[0][:2] == ("D103", "a.wait")


def test_a_wait_between_two_levels_is_no_cycle() -> None:
    """Each queue is passed once."""
    text = (
        "delay: {levels: [1s, 2s]}\nroutes:\n  - {from: a.exchange, key: k, delay: 1s, to: {exchange: b.exchange}}\n"
        "  - {from: b.exchange, key: k, delay: 2s, to: q}\n"
    )

    assert "D103" in {code for code, _, _ in found(text)}, "all levels share one exit, so the second leads back to b"
    assert "D103" not in {code for code, _, _ in found(text.replace("delay: 1s, ", ""))}


def test_at_least_once_without_a_way_out_is_stuck_not_lost() -> None:
    """The broker keeps trying, and the queue fills."""
    text = (
        "delay: {levels: [1m], queue: {profile: safe}}\nroutes:\n"
        "  - {key: k, delay: 1m, to: {exchange: site.exchange}}\n  - {from: site.exchange, key: other, to: q}\n"
    )

    [(code, at, message)] = found(text)

    assert (code, at) == ("D101", "delay.1m.queue")
    assert "stays and is tried again every 3 minutes; 32 of them block the queue" in message


def test_a_part_of_the_way_that_leads_nowhere_is_told_of() -> None:
    """Another target gets its copy all the same."""
    text = (
        "delay: {levels: [1m]}\nroutes:\n"
        "  - {key: k, delay: 1m, to: [q, {exchange: site.exchange}]}\n  - {from: site.exchange, key: other, to: p}\n"
    )

    assert [(code, at) for code, at, _ in found(text)] == [("D101", "site.exchange")]


def test_an_exchange_of_others_is_not_judged_without_a_broker() -> None:
    """They may have bound anything to it."""
    text = (
        "delay: {levels: [1m]}\nexchanges: {site.exchange: {existing: true}}\nroutes:\n"
        "  - {key: k, delay: 1m, to: {exchange: site.exchange}}\n  - {from: site.exchange, key: other, to: p}\n"
    )

    assert found(text) == []


def test_two_patterns_that_some_key_fits_deliver_twice() -> None:
    """Although neither takes a sample of the other."""
    text = (
        'delay: {levels: [1m, 5m]}\nroutes:\n  - {from: a.exchange, key: "order.*", delay: 1m, to: q}\n'
        '  - {from: a.exchange, key: "*.created", delay: 5m, to: q}\n'
    )

    [(code, at, message)] = found(text)

    assert (code, at) == ("D104", "q")
    assert message.endswith("reaches q 2 times: after 1m and after 5m")


def test_at_once_and_later_is_twice_too() -> None:
    """A copy that does not wait is a copy."""
    text = (
        "delay: {levels: [1m]}\nroutes:\n  - {from: a.exchange, key: k, to: q}\n"
        "  - {from: a.exchange, key: k, delay: 1m, to: q}\n"
    )

    assert [message.rpartition(": ")[2] for _, _, message in found(text)] == ["at once and after 1m"]


@pytest.mark.parametrize(
    ("way_out", "severity"),
    [("order.created", Severity.WARNING), ("*.paid", Severity.WARNING), ("bill.sent", Severity.ERROR)],
)
def test_a_pattern_of_which_some_keys_are_let_out_is_no_error(way_out: str, severity: Severity) -> None:
    """Which of its keys come is not in the file; where none is let out, all are lost."""
    text = (
        f"version: 1\ndelay: none\nqueues:\n  a.wait: {wait('b.exchange')}\nroutes:\n"
        f'  - {{from: a.exchange, key: "order.#", to: a.wait}}\n  - {{from: b.exchange, key: "{way_out}", to: q}}\n'
    )
    spec = read_spec(text, {}, file="topology.yaml")

    assert [(f.code, f.severity) for f in lint(spec, expand(spec)).findings if f.code == "D101"] == [("D101", severity)]


def test_a_publisher_may_choose_between_levels() -> None:
    """The same key at several levels to the same queue is what levels are for."""
    text = "delay: {levels: [1m, 5m]}\nroutes:\n  - {key: k, delay: 1m, to: q}\n  - {key: k, delay: 5m, to: q}\n"

    assert found(text) == []


def test_a_pattern_for_everything_takes_retries_too() -> None:
    """They come out of the same exchange, with a key of their own."""
    text = (
        'delay: {levels: [1m]}\nroutes:\n  - {key: "#", delay: 1m, to: audit.queue}\n'
        "retry:\n  orders.queue: {levels: [1m], max: 1, park: orders.dlq}\n"
    )

    assert [message for code, _, message in found(text) if code == "D105"] == [
        "a retry of orders.queue also reaches audit.queue after 1m, by the way out of another route (key '#')",
        "what is parked in orders.dlq also reaches audit.queue, by the way out of another route (key '#')",
    ]


def test_retries_by_broker_come_out_nowhere() -> None:
    """They stay in their queue; only what is parked goes by the exit."""
    text = (
        'delay: {levels: [1m]}\nqueues: {orders.queue: {type: quorum}}\nroutes:\n  - {key: "#", delay: 1m, to: audit.queue}\n'
        "retry:\n  orders.queue: {by: broker, step: 10s, park: orders.dlq}\n"
    )

    assert [message for code, _, message in found(text) if code == "D105"] == [
        "what is parked in orders.dlq also reaches audit.queue, by the way out of another route (key '#')"
    ]


def test_refused_messages_are_counted_in_percent() -> None:
    """With reject-publish nobody comes early, but some don't get in."""
    text = "delay:\n  levels:\n    10m: {max_length: 3000000, overflow: reject-publish, expected_rate: 10000/s}\n"

    [(code, _, message)] = found(text)

    assert code == "D205"
    assert "10000/s for 10m are 6,000,000 messages, and delay.10m.queue holds 3,000,000" in message
    assert "it is full after 5m, and from then on 50 % of the messages are refused" in message


def test_settings_in_a_policy_count_as_those_in_arguments() -> None:
    """What is in force is what is judged."""
    text = "delay:\n  settings: policy\n  levels:\n    1m: {max_length: unlimited}\n"

    assert [(code, at) for code, at, _ in found(text)] == [("D207", "delay.1m.queue")]


def test_an_own_wait_before_a_replicated_queue_is_seen() -> None:
    """By the bindings of its exit."""
    text = (
        f"delay: none\nqueues:\n  a.wait: {wait('due.exchange')}\n  q: {{type: quorum}}\n"
        'routes:\n  - {from: due.exchange, key: "#", to: q}\n'
    )

    assert [(code, at) for code, at, _ in found(text)] == [("D210", "a.wait")]


def test_at_least_once_on_a_classic_queue_is_told_of() -> None:
    """The broker refuses the argument there."""
    text = (
        "delay: none\nexchanges: {due.exchange: {existing: true}}\nqueues:\n  a.wait:\n    arguments: {x-message-ttl: 1000,"
        " x-max-length: 1000000, x-dead-letter-exchange: due.exchange, x-dead-letter-strategy: at-least-once}\n"
    )

    [(code, _, message)] = found(text)

    assert code == "D213"
    assert message.endswith("a classic queue does not take x-dead-letter-strategy")


def test_a_message_key_that_names_no_queue_is_an_unknown_exit() -> None:
    """By the default exchange the key is the address, and this one leads nowhere in the file."""
    text = f"delay: none\nqueues:\n  a.wait: {wait(chr(34) * 2)}\nroutes:\n  - {{from: a.exchange, key: mail, to: a.wait}}\n"

    assert [(code, at) for code, at, _ in found(text)] == [("D102", "a.wait")]


@pytest.mark.parametrize(
    ("version", "memory", "expected"),
    [
        ("3.10.8", 2 * 10**9, ["D208"]),
        ("4.3.6", 2 * 10**9, []),
        ("3.10.8", 4 * 10**9, []),
        ("3.10.8", None, []),
    ],
)
def test_the_memory_of_the_node_is_held_against_all_waits(
    version: str, memory: int | None, expected: list[str]
) -> None:
    """Three levels of a million take 3.3 GB on RabbitMQ 3, and a fraction of it on 4."""
    answer = found("delay: {levels: [1m, 5m, 15m]}\n", Live(version), Facts(memory=memory))

    assert [code for code, _, _ in answer] == expected


def test_a_policy_of_others_takes_the_place_of_ours() -> None:
    """With settings in a policy, one of a higher priority leaves the queue without a TTL."""
    theirs = replace(policy("lazy", "^delay", queue_mode="lazy"), priority=99)
    live = Live("3.10.8", policies=(theirs,))

    [(code, at, message)] = found("delay: {levels: [1m], settings: policy}\n", live)

    assert (code, at) == ("D401", "delay.1m.queue")
    assert message.endswith(": messages never leave; its length has no limit, not 1,000,000")


def test_a_policy_that_changes_nothing_is_no_finding() -> None:
    """A longer TTL and a mode of storage leave the delay as it is."""
    live = Live("3.10.8", policies=(policy("long", "^delay.1m", message_ttl=10**9, queue_mode="lazy"),))

    assert found("delay: {levels: [1m]}\n", live) == []


def test_an_existing_queue_is_judged_by_what_the_broker_says_of_it() -> None:
    """Its TTL and exit are known only there."""
    there = Queue("a.wait", Settings(ttl=Duration(1000), dead_letter_exchange="gone.exchange"))
    live = Live("4.3.6", queues={"a.wait": there})

    answer = found("delay: none\nqueues: {a.wait: {existing: true}}\n", live)

    assert ("D102", "a.wait") in {(code, at) for code, at, _ in answer}


def test_transient_messages_are_no_finding_where_nothing_waits() -> None:
    """Zero of zero."""
    facts = Facts(waiting={"delay.1m.queue": Waiting(0, 0), "other.queue": Waiting(5, 0)})

    assert found("delay: {levels: [1m]}\n", Live("3.10.8"), facts) == []


@pytest.mark.parametrize(
    ("source", "version", "expected"),
    [
        ("releases/tag/v3.10.0", "3.9.29", True),
        ("releases/tag/v3.10.0", "3.10.0", False),
        ("pull/4947", "3.10.4", True),
        ("pull/4947", "3.10.5", False),
        ("pull/8799", "3.10.8", True),
        ("pull/8799", "3.11.19", True),
        ("pull/8799", "3.11.20", False),
        ("pull/8799", "3.12.1", True),
        ("pull/8799", "3.12.2", False),
        ("issues/11159", "3.12.14", False),
        ("issues/11159", "3.13.2", True),
        ("issues/11159", "3.13.3", False),
        ("issues/11159", "4.0.1", False),
        ("pull/14926", "4.1.8", True),
        ("pull/14926", "4.2.1", False),
        ("pull/16271", "4.2.9", False),
        ("pull/16271", "4.3.0", True),
        ("pull/16271", "4.3.1", False),
        ("pull/2508", "3.10.8", True),
        ("pull/2508", "4.3.1", False),
        ("issues/16652", "4.2.4", True),
        ("issues/16652", "4.3.3", False),
    ],
)
def test_a_bug_is_in_the_releases_that_have_it(source: str, version: str, expected: bool) -> None:
    """From the first to the last before the fix of its series."""
    bug = next(bug for bug in BUGS if bug.source.endswith(source))
    parsed = parse_version(version)

    assert parsed is not None
    assert bug.is_in(parsed) is expected


def test_bugs_are_told_where_they_touch_the_file() -> None:
    """A consumer's rejection on a round trip in 3.13, an empty key in 4.3.0, a cluster with at-least-once."""
    loop = (
        f"delay: none\nqueues:\n  a.wait: {wait('work.exchange')}\n"
        "  work: {arguments: {x-dead-letter-exchange: retry.exchange}}\nroutes:\n"
        '  - {from: retry.exchange, key: "#", to: a.wait}\n  - {from: work.exchange, key: "#", to: work}\n'
    )
    empty = 'delay: {levels: [1m]}\nroutes:\n  - {from: a.exchange, key: "", to: q}\n'
    safe = "delay: {levels: [1m], queue: {profile: safe}}\n"
    by_broker = (
        "delay: {levels: [1m]}\nqueues: {work: {type: quorum}}\nroutes: [{from: e, key: k, to: work}]\n"
        "retry: {work: {by: broker, step: 10s, park: dlq}}\n"
    )

    assert [(code, at) for code, at, _ in found(loop, Live("3.13.1"))] == [("D403", "work")]
    assert [(code, at) for code, at, _ in found(empty, Live("4.3.0"))] == [("D403", "a.exchange")]
    assert [(code, at) for code, at, _ in found(safe, Live("4.3.0"), Facts(nodes=3))] == [("D403", "delay.1m.queue")]
    assert found(safe, Live("4.3.0"), Facts(nodes=1)) == []
    assert [(code, at) for code, at, _ in found(by_broker, Live("3.10.8"))] == [("D403", "work")]
    assert found(by_broker, Live("4.3.1")) == []
    assert found(safe, Live("unheard of"), Facts(nodes=3)) == []


def test_headers_that_the_broker_skips_may_leave_nothing_to_match() -> None:
    """With x-match: any, no header left means no message."""
    text = (
        "delay: none\nexchanges: {e: {type: headers}}\nroutes:\n"
        "  - {from: e, headers: {x-match: any, x-a: b}, to: q}\n  - {from: e, headers: {a: b, x-a: b}, to: q}\n"
    )

    assert [message for _, _, message in found(text)] == [
        "the broker does not look at x-a, so the route takes no message of e",
        "the broker does not look at x-a, the other headers decide alone",
    ]


def test_arguments_of_the_wrong_kind_are_left_in_peace() -> None:
    """What the broker would not read as a TTL is none."""
    live = Live("3.10.8", queues={"q": Queue("q", extra=freeze_arguments({"x-message-ttl": "60000"}))})

    assert found("delay: none\nqueues: {q: {existing: true}}\n", live) == []
