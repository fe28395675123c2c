"""The settings in force: facts 16 to 18 of the reference, one by one."""

from typing import Any

import pytest
from delayctl.topology.arguments import policy_definition
from delayctl.topology.duration import Duration
from delayctl.topology.effective import Effective, default_of, effective, is_readable, winner
from delayctl.topology.model import Policy, Queue, Settings

LONG, SHORT = Duration(60_000), Duration(1_000)


def queue(settings: Settings, *, type: str | None = "classic") -> Queue:
    """A queue with these arguments."""
    return Queue("delay.1m.queue", Settings(type, *(getattr(settings, name) for name in settings.__slots__[1:])))


def policy(
    settings: Settings, *, name: str = "theirs", pattern: str = "^delay", to: str = "queues", priority: int = 0
) -> Policy:
    """A policy with this definition."""
    return Policy(name, pattern, to, priority, policy_definition(settings))


def test_without_policies_the_arguments_are_in_force() -> None:
    """What the queue was declared with is what it does."""
    declared = queue(Settings(ttl=LONG, overflow="drop-head"))

    assert effective(declared, (), ()) == Effective(declared.settings)


@pytest.mark.parametrize("type", ["classic", "quorum"])
@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        (Settings(ttl=LONG), Settings(ttl=SHORT)),
        (Settings(max_length=100), Settings(max_length=7)),
        (Settings(max_bytes=1_000), Settings(max_bytes=10)),
        (Settings(expires=LONG), Settings(expires=SHORT)),
        (Settings(delivery_limit=20), Settings(delivery_limit=3)),
        (Settings(retry_min=LONG), Settings(retry_min=SHORT)),
        (Settings(retry_max=LONG), Settings(retry_max=SHORT)),
    ],
)
def test_of_two_limits_the_smaller_is_in_force(larger: Settings, smaller: Settings, type: str) -> None:
    """It makes no difference which of them is the argument and which the policy."""
    expected = queue(smaller, type=type).settings

    assert effective(queue(larger, type=type), [policy(smaller)], ()).settings == expected
    assert effective(queue(smaller, type=type), [policy(larger)], ()).settings == expected


@pytest.mark.parametrize(
    "given",
    [
        Settings(ttl=SHORT),
        Settings(max_length=7),
        Settings(max_bytes=10),
        Settings(expires=SHORT),
        Settings(overflow="reject-publish"),
        Settings(dead_letter_exchange="theirs"),
        Settings(dead_letter_key="theirs"),
        Settings(dead_letter_strategy="at-least-once"),
        Settings(retry_type="all", retry_min=SHORT, retry_max=LONG, delivery_limit=3),
    ],
)
def test_a_policy_gives_what_the_arguments_leave_open(given: Settings) -> None:
    """Each setting that policies know can come from one alone."""
    assert effective(queue(Settings()), [policy(given)], ()).settings == queue(given).settings


@pytest.mark.parametrize(
    ("type", "winning"), [("classic", "drop-head"), (None, "drop-head"), ("quorum", "reject-publish")]
)
def test_overflow_is_decided_by_the_type(type: str | None, winning: str) -> None:
    """On a classic queue the argument wins, on a quorum queue the policy."""
    found = effective(
        queue(Settings(overflow="drop-head"), type=type), [policy(Settings(overflow="reject-publish"))], ()
    )

    assert found.settings.overflow == winning


def test_what_waits_before_a_retry_is_decided_by_the_policy() -> None:
    """It can switch the waits off, whatever the queue was declared with."""
    declared = queue(Settings(retry_type="failed"), type="quorum")

    found = effective(declared, [policy(Settings(retry_type="disabled"))], ()).settings

    assert (found.retry_type, found.waits_between_retries) == ("disabled", False)


@pytest.mark.parametrize("type", ["classic", "quorum"])
@pytest.mark.parametrize("field", ["dead_letter_exchange", "dead_letter_key", "dead_letter_strategy"])
def test_where_dead_letters_go_is_decided_by_the_argument(field: str, type: str) -> None:
    """A policy can't lead them astray once the queue says where they go."""
    argument: dict[str, Any] = {field: "ours"}
    other: dict[str, Any] = {field: "theirs"}
    declared = queue(Settings(**argument), type=type)

    assert effective(declared, [policy(Settings(**other))], ()).settings == declared.settings


def test_the_smallest_of_three_limits_is_in_force() -> None:
    """Argument, policy and operator policy all have a say in a limit."""
    declared = queue(Settings(ttl=LONG, max_length=7, max_bytes=100))
    user = policy(Settings(ttl=SHORT, max_length=100, max_bytes=50))
    operator = policy(Settings(ttl=LONG, max_length=50, max_bytes=10), name="operator")

    assert effective(declared, [user], [operator]) == Effective(
        queue(Settings(ttl=SHORT, max_length=7, max_bytes=10)).settings, user, operator
    )


def test_an_operator_policy_beats_a_policy() -> None:
    """Where no limit decides, the operator's word stands over the user's."""
    user, operator = (
        policy(Settings(overflow="drop-head")),
        policy(Settings(overflow="reject-publish"), name="operator"),
    )

    assert effective(queue(Settings()), [user], [operator]).settings.overflow == "reject-publish"


def test_only_the_highest_priority_applies() -> None:
    """Policies never merge: what the winner does not say, no other policy adds."""
    low = policy(Settings(ttl=SHORT), name="low", priority=1)
    high = policy(Settings(max_length=7), name="high", priority=2)

    assert effective(queue(Settings()), [low, high], ()) == Effective(queue(Settings(max_length=7)).settings, high)


def test_of_equal_priorities_the_first_is_taken() -> None:
    """The broker leaves it open; callers list policies of others first, so that the worse case is assumed."""
    first, second = policy(Settings(ttl=SHORT), name="first"), policy(Settings(ttl=LONG), name="second")

    assert winner(queue(Settings()), [first, second]) == first


@pytest.mark.parametrize(
    ("to", "type", "applies"),
    [
        ("queues", "classic", True),
        ("all", "classic", True),
        ("classic_queues", "classic", True),
        ("classic_queues", None, True),
        ("quorum_queues", "classic", False),
        ("quorum_queues", "quorum", True),
        ("classic_queues", "quorum", False),
        ("streams", "classic", False),
        ("streams", "stream", True),
        ("queues", "stream", True),
        ("all", "stream", True),
        ("quorum_queues", "stream", False),
        ("all", "x-mqtt-qos0", True),
        ("classic_queues", "x-mqtt-qos0", False),
        ("exchanges", "classic", False),
        ("exchanges", "stream", False),
    ],
)
def test_a_policy_applies_to_kinds_of_objects(to: str, type: str | None, applies: bool) -> None:
    """Some are for all queues, some for one type, some for none."""
    candidate = policy(Settings(ttl=SHORT), to=to)

    assert winner(queue(Settings(), type=type), [candidate]) == (candidate if applies else None)


@pytest.mark.parametrize(("pattern", "applies"), [("1m", True), ("^delay\\.", True), ("^1m", False), ("", True)])
def test_a_pattern_may_match_anywhere_in_a_name(pattern: str, applies: bool) -> None:
    """Like the broker, which anchors nothing by itself."""
    candidate = policy(Settings(ttl=SHORT), pattern=pattern)

    assert winner(queue(Settings()), [candidate]) == (candidate if applies else None)


@pytest.mark.parametrize("pattern", ["(", "[[:digit:]]", "a{99999999999}", "\\h", "(" * 5_000])
def test_a_pattern_that_python_reads_otherwise_is_told_apart(pattern: str) -> None:
    """The broker's patterns are PCRE; one that Python refuses or misreads applies to nothing here."""
    assert not is_readable(pattern)
    assert winner(queue(Settings()), [policy(Settings(ttl=SHORT), pattern=pattern)]) is None


def test_what_the_broker_does_by_default() -> None:
    """Three settings have a meaning where they are not given."""
    assert {name: default_of(name) for name in ("overflow", "dead_letter_strategy", "type", "ttl")} == {
        "overflow": "drop-head",
        "dead_letter_strategy": "at-most-once",
        "type": "classic",
        "ttl": None,
    }
