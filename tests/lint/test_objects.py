"""What the rules say of single objects: what the broker refuses, has no room for, or overrules; and of silences."""

from dataclasses import replace

import pytest
from delayctl.topology.expand import expand
from delayctl.topology.lint import lint
from delayctl.topology.live import Live
from delayctl.topology.model import Binding, Exchange, Policy, Queue
from delayctl.topology.parse import read_spec

from tests.lint.brokers import policy
from tests.lint.test_edges import found, wait


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ("arguments: {x-dead-letter-routing-key: k}", "x-dead-letter-routing-key needs x-dead-letter-exchange"),
        ("arguments: {x-max-priority: 256}", "x-max-priority must be 0 to 255, not 256"),
        ("arguments: {x-overflow: drop}", "it knows no x-overflow 'drop'"),
        ("type: quorum, arguments: {x-dead-letter-strategy: twice}", "it knows no x-dead-letter-strategy 'twice'"),
        ("arguments: {x-expires: 0}", "x-expires must be 1 to 315360000000, not 0"),
        ("arguments: {x-delivery-limit: 3}", "a classic queue does not take x-delivery-limit"),
        ("type: quorum, arguments: {x-queue-mode: lazy}", "a quorum queue does not take x-queue-mode"),
    ],
)
def test_what_the_broker_refuses_is_an_error(queue: str, why: str) -> None:
    """Before apply gets stuck at it."""
    assert found(f"delay: none\nqueues: {{q: {{{queue}}}}}\n") == [
        ("D213", "q", f"the broker refuses to declare q: {why}")
    ]


@pytest.mark.parametrize("arguments", ["x-max-priority: 255", "x-overflow: reject-publish-dlx", "x-max-length: 0"])
def test_what_the_broker_takes_is_none(arguments: str) -> None:
    """Both versions were asked."""
    assert found(f"delay: none\nqueues: {{q: {{arguments: {{{arguments}}}}}}}\n") == []


def severities(text: str, live: Live | None = None) -> list[tuple[str, str]]:
    """Code and severity of every finding."""
    spec = read_spec(f"version: 1\n{text}", {}, file="topology.yaml")
    return [(f.code, f.severity.value) for f in lint(spec, expand(spec), live=live).findings]


def test_an_exit_that_the_broker_does_not_have_either_is_an_error() -> None:
    """Every message is lost; without a broker somebody else may have it, and what is rejected is not every message."""
    waits = f"delay: none\nqueues: {{w: {wait('gone')}}}\n"
    rejects = "delay: none\nqueues: {w: {arguments: {x-dead-letter-exchange: gone}}}\n"
    by_name = f"delay: none\nqueues: {{w: {wait(chr(34) * 2)}}}\nroutes: [{{from: in, key: KEY, to: w}}]\n"
    there = Live("4.3.6", exchanges={"gone": Exchange("gone", "fanout")})

    assert severities(waits) == severities(rejects) == severities(rejects, Live("4.3.6")) == [("D102", "warning")]
    assert severities(waits, Live("4.3.6")) == [("D102", "error")]
    assert severities(by_name.replace("KEY", "mail"), Live("4.3.6")) == [("D102", "error")]
    assert severities(by_name.replace("KEY", "mail.*"), Live("4.3.6")) == [("D102", "warning")]
    assert "D102" not in {code for code, _ in severities(waits, there)}


def test_an_alternate_by_a_policy_is_a_way_out() -> None:
    """Somebody else parks what the exit does not know."""
    text = (
        f"delay: none\nexchanges: {{in: {{}}, due: {{}}}}\nqueues:\n  w: {wait('due')}\nroutes:\n"
        "  - {from: in, key: a, to: w}\n  - {from: due, key: b, to: o}\n"
    )
    net = replace(policy("net", "^due$", alternate_exchange="amq.fanout"), apply_to="exchanges")
    park = Binding("amq.fanout", "queue", "park")
    there = Live("4.3.6", bindings=frozenset({park}), queues={"park": Queue("park")})

    assert [code for code, _, _ in found(text, there)] == ["D101"]
    assert found(text, replace(there, policies=(net,))) == []


@pytest.mark.parametrize("queue", ["o", "o.dlq", "delay.unrouted.queue"])
@pytest.mark.parametrize(
    ("definition", "effect"),
    [
        ({"message_ttl": 1000}, "what nobody takes within 1s is deleted"),
        (
            {"message_ttl": 1000, "dead_letter_exchange": "amq.fanout"},
            "what nobody takes within 1s leaves for amq.fanout",
        ),
        (
            {"message_ttl": 1000, "dead_letter_exchange": "gone"},
            "what nobody takes within 1s leaves for gone, which is not there: it is lost",
        ),
        ({"dead_letter_exchange": "gone"}, "what is rejected leaves for gone, which is not there: it is lost"),
        ({"expires": 1000}, "it is deleted with its messages 1s after its last use"),
    ],
)
def test_a_policy_on_any_queue_of_the_file_is_looked_at(queue: str, definition: dict[str, object], effect: str) -> None:
    """Targets, and where messages are parked."""
    text = (
        "delay: {levels: [1m]}\nroutes: [{key: a, delay: 1m, to: o}]\nretry: {o: {levels: [1m], max: 1, park: o.dlq}}\n"
    )
    theirs = policy("theirs", f"^{queue}$", **definition)

    [(code, at, message)] = found(text, Live("4.3.6", policies=(theirs,)))

    assert (code, at) == ("D401", queue)
    assert message.endswith(f"overrules the file at {queue}: {effect}")


BY_POLICY = (
    "delay: none\nexchanges: {in: {}, due: {}}\nqueues: {w: {}, o: {}}\nroutes:\n"
    "  - {from: in, key: a, to: w}\n  - {from: due, key: a, to: o}\n"
)
WAITS = policy("waits", "^w$", message_ttl=7000, dead_letter_exchange="due", max_length=2_000_000)


@pytest.mark.parametrize("text", [BY_POLICY, BY_POLICY.replace("w: {}", "w: {existing: true}")])
def test_a_policy_that_a_queue_waits_by_is_no_strangers(text: str) -> None:
    """As import finds it: to clear it would be the end of the delay."""
    there = Live("4.3.6", queues={"w": Queue("w")}, policies=(WAITS,))

    assert [code for code, _, _ in found(text, there) if code == "D401"] == []


@pytest.mark.parametrize(
    "theirs",
    [
        replace(WAITS, definition=(("message-ttl", 7000), ("dead-letter-exchange", "amq.fanout"))),
        replace(WAITS, definition=(("message-ttl", 7000),)),
        replace(WAITS, pattern="."),
    ],
    ids=["leads elsewhere", "leads nowhere", "touches what has waited"],
)
def test_a_policy_that_does_more_than_that_is(theirs: Policy) -> None:
    """Where messages leave the file, or should have come to rest."""
    delayed = "delay: {levels: [1m]}\nexchanges: {due: {}}\nroutes: [{key: a, delay: 1m, to: w}]\n"
    text = BY_POLICY if theirs.pattern == "^w$" else delayed

    assert ("D401", "w") in [(code, at) for code, at, _ in found(text, Live("4.3.6", policies=(theirs,)))]


def test_an_operator_policy_shortens_a_wait_by_policy() -> None:
    """Which is told, with the wait that it should be."""
    shorter = policy("shorter", "^w$", message_ttl=1000)

    said = found(BY_POLICY, Live("4.3.6", policies=(WAITS,), operator_policies=(shorter,)))

    [message] = [message for code, _, message in said if code == "D401"]
    assert message.endswith("overrules the file at w: messages leave after 1s, not 7s")


def test_a_limit_by_a_policy_is_a_limit_of_a_target() -> None:
    """What is in force is what loses messages."""
    text = "delay: {levels: [1m]}\nroutes: [{key: a, delay: 1m, to: o}]\n"

    answer = found(text, Live("4.3.6", policies=(policy("small", "^o$", max_length=10),)))

    assert answer == [("D212", "o", "o has room for 10 messages: when it is full, its oldest messages are deleted")]


def test_a_full_target_is_waited_for_where_dead_lettering_tries_again() -> None:
    """At least once means until there is room."""
    text = (
        "delay: {{levels: [1m], queue: {{{queue}}}}}\nroutes: [{{key: a, delay: 1m, to: o}}]\n"
        "queues: {{o: {{type: quorum, arguments: {{x-max-length: 10, x-overflow: reject-publish}}}}}}\n"
    )

    assert found(text.format(queue="profile: safe")) == []
    assert "D212" in {code for code, _, _ in found(text.format(queue="type: quorum"))}


def test_a_target_that_expires_may_be_gone() -> None:
    """Nobody has used it while messages waited."""
    text = "delay: {levels: [1m]}\nqueues: {o: {arguments: {x-expires: 1000}}}\nroutes: [{key: a, delay: 1m, to: o}]\n"

    assert [(code, at) for code, at, _ in found(text)] == [("D211", "o")]


def test_any_of_no_headers_takes_nothing() -> None:
    """While all of none takes everything."""
    text = "delay: none\nexchanges: {e: {type: headers}}\nroutes:\n  - {from: e, headers: {x-match: HOW}, to: q}\n"

    assert [code for code, _, _ in found(text.replace("HOW", "any"))] == ["D107"]
    assert found(text.replace("HOW", "all")) == []


def test_room_for_nothing_is_no_wait() -> None:
    """No message, or not a byte for each."""
    none = f"delay: none\nexchanges: {{due: {{existing: true}}}}\nqueues:\n  w: {wait('due')}\n".replace("1000000", "0")
    bytes_ = "delay: {levels: {1m: {max_bytes: 10, expected_rate: 1000/s}}}\n"

    assert [message for _, _, message in found(none)] == [
        "w has no room at all: every message leaves at once instead of waiting 1s"
    ]
    assert [code for code, _, _ in found(bytes_)] == ["D205"]


def test_an_own_queue_without_a_limit_may_be_worked_on() -> None:
    """A TTL and a queue for what nobody got to are no wait that only grows."""
    text = "delay: none\nexchanges: {dlx: {existing: true}}\nqueues:\n  w: {arguments: {x-message-ttl: 1000, x-dead-letter-exchange: dlx}}\n"

    assert severities(text) == [("D207", "info")]


def test_a_silence_that_is_there_twice_or_of_no_rule_is_told_as_that() -> None:
    """And one for all objects beside one for a single one is used, too."""
    text = (
        "delay: {levels: {1m: {max_length: unlimited}}}\nlint:\n  ignore:\n    - {rule: D207, at: delay.1m.queue, reason: y}\n"
        "    - {rule: D207, at: delay.1m.queue, reason: z}\n    - {rule: D207, reason: y}\n    - {rule: D999, reason: y}\n"
    )
    spec = read_spec(f"version: 1\n{text}", {}, file="topology.yaml")

    assert [(f.code, f.message) for f in lint(spec, expand(spec)).findings] == [
        ("D303", "D207 at delay.1m.queue is ignored in line 5 already"),
        ("D303", "there is no rule D999, so there is nothing to ignore"),
    ]
