"""Object by object: what differs, and who bends it."""

from dataclasses import replace
from typing import Any

import pytest
from delayctl.topology.compare import compare_exchange, compare_policy, compare_queue, policy_drift
from delayctl.topology.duration import Duration
from delayctl.topology.live import Live
from delayctl.topology.model import Exchange, Policy, Queue, Settings, freeze_arguments
from delayctl.topology.plan import Difference, Refusal

MINUTE, SECOND = Duration(60_000), Duration(1_000)
DELAY = Queue("delay.1m.queue", Settings("classic", MINUTE, 10, overflow="drop-head", dead_letter_exchange="exit"))
BUSINESS = Queue("orders.queue", Settings(max_length=10))
OURS = Policy("delay.1m.policy", "^delay\\.1m\\.queue$", "queues", 10, freeze_arguments({"message-ttl": 60_000}))


def theirs(priority: int = 0, **definition: Any) -> Policy:
    """A policy of others on all queues."""
    spelled = {name.replace("_", "-"): value for name, value in definition.items()}
    return Policy("theirs", ".*", "queues", priority, freeze_arguments(spelled))


def operators(**definition: Any) -> Live:
    """A broker with an operator policy on all queues."""
    return Live(operator_policies=(replace(theirs(**definition), name="limits"),))


def with_settings(queue: Queue, **settings: Any) -> Queue:
    """The queue with other arguments."""
    return replace(queue, settings=replace(queue.settings, **settings))


def test_equal_exchanges_have_no_difference() -> None:
    """Nothing to do."""
    assert compare_exchange(Exchange("a", alternate="b"), Exchange("a", alternate="b")) == ()


def test_every_trait_of_an_exchange_counts() -> None:
    """None of them can be changed on the broker."""
    found = Exchange("a", "direct", "b", False, True, True, freeze_arguments({"x-max-hops": 2, "x-old": 1}))
    desired = Exchange("a", "topic", None, extra=freeze_arguments({"x-max-hops": 3}))

    assert compare_exchange(desired, found) == (
        Difference("type", "direct", "topic"),
        Difference("alternate", "b", None),
        Difference("durable", False, True),
        Difference("auto_delete", True, False),
        Difference("internal", True, False),
        Difference("x-max-hops", 2, 3),
        Difference("x-old", 1, None),
    )


def test_a_policy_differs_key_by_key() -> None:
    """What was removed, changed and added all shows."""
    found = Policy("p", "^a", "all", 1, freeze_arguments({"max-length": 5, "expires": 1, "ha-params": ["a", "b"]}))
    desired = Policy("p", "^b", "queues", 2, freeze_arguments({"max-length": 6, "overflow": "drop-head"}))

    assert compare_policy(desired, found) == (
        Difference("pattern", "^a", "^b"),
        Difference("apply_to", "all", "queues"),
        Difference("priority", 1, 2),
        Difference("expires", 1, None),
        Difference("ha-params", ("a", "b"), None),
        Difference("max-length", 5, 6),
        Difference("overflow", None, "drop-head"),
    )


def test_equal_queues_have_no_difference() -> None:
    """Nothing to do."""
    assert compare_queue(DELAY, DELAY, Live(), ()) == ()


def test_every_argument_of_a_queue_counts() -> None:
    """Each is shown by the name that it has on the broker."""
    found = Queue(
        DELAY.name,
        Settings("quorum", SECOND, 5, 6, "reject-publish", "other", "key", "at-least-once", SECOND),
        durable=False,
        auto_delete=True,
        extra=freeze_arguments({"x-max-priority": 5}),
    )

    assert compare_queue(DELAY, found, Live(), ()) == (
        Difference("x-queue-type", "quorum", "classic"),
        Difference("x-message-ttl", SECOND, MINUTE),
        Difference("x-max-length", 5, 10),
        Difference("x-max-length-bytes", 6, None),
        Difference("x-overflow", "reject-publish", "drop-head"),
        Difference("x-dead-letter-exchange", "other", "exit"),
        Difference("x-dead-letter-routing-key", "key", None),
        Difference("x-dead-letter-strategy", "at-least-once", None),
        Difference("x-expires", SECOND, None),
        Difference("durable", False, True),
        Difference("auto_delete", True, False),
        Difference("x-max-priority", 5, None),
    )


def test_an_argument_of_the_wrong_type_shows_once() -> None:
    """The broker tells "60000" from 60000; both sides stand in one line."""
    found = replace(with_settings(DELAY, ttl=None), extra=freeze_arguments({"x-message-ttl": "60000"}))

    assert compare_queue(DELAY, found, Live(), ()) == (Difference("x-message-ttl", "60000", MINUTE),)


def test_a_default_is_as_good_as_the_argument() -> None:
    """A queue without type and overflow is classic and drops its head."""
    assert compare_queue(DELAY, with_settings(DELAY, type=None, overflow=None), Live(), ()) == ()


def test_a_type_that_the_file_leaves_open_is_not_compared() -> None:
    """The broker's default may be quorum."""
    assert compare_queue(BUSINESS, with_settings(BUSINESS, type="quorum"), Live(), ()) == ()


def test_a_setting_that_a_policy_gives_is_not_missing() -> None:
    """The queue does what the file asks for, whoever sees to it."""
    assert compare_queue(DELAY, with_settings(DELAY, ttl=None), Live(), (OURS,)) == ()


def test_an_argument_where_a_policy_is_wanted_is_a_difference() -> None:
    """It would hold a later, longer TTL of the policy down."""
    desired = with_settings(DELAY, ttl=None)

    assert compare_queue(desired, DELAY, Live(), (OURS,)) == (Difference("x-message-ttl", MINUTE, None),)


@pytest.mark.parametrize("queue", [DELAY, BUSINESS])
def test_without_policies_of_others_nothing_is_bent(queue: Queue) -> None:
    """Our own policies are what is wanted."""
    assert policy_drift(queue, Live(), (OURS,), (OURS,), is_delay=queue is DELAY) is None


@pytest.mark.parametrize("definition", [{"max_length": 10}, {"message_ttl": 60_001}, {"queue_mode": "lazy"}])
def test_a_policy_that_changes_nothing_is_left_in_peace(definition: dict[str, Any]) -> None:
    """A larger limit, or a setting that delays don't depend on, does no harm."""
    assert policy_drift(DELAY, Live(), (theirs(**definition),), (), is_delay=True) is None


def test_a_shorter_ttl_by_a_policy_of_others_is_drift() -> None:
    """The arguments look right and the delay is not: the refusal says by how much and because of whom."""
    assert policy_drift(DELAY, Live(), (theirs(5, message_ttl=1_000),), (), is_delay=True) == Refusal(
        "queue delay.1m.queue",
        "policy theirs (priority 5) changes what it does",
        "narrow the pattern of policy theirs, or remove it: rabbitmqctl clear_policy -p / theirs",
        (Difference("message-ttl", SECOND, MINUTE),),
    )


def test_a_policy_of_others_that_displaces_ours_is_drift() -> None:
    """Policies never merge: the TTL that only ours gives is gone."""
    desired, displacing = with_settings(DELAY, ttl=None), theirs(11, max_length=5)

    assert policy_drift(desired, Live(), (displacing, OURS), (OURS,), is_delay=True) == Refusal(
        "queue delay.1m.queue",
        "policy theirs (priority 11) changes what it does",
        "narrow the pattern of policy theirs, or remove it: rabbitmqctl clear_policy -p / theirs",
        (Difference("message-ttl", None, MINUTE), Difference("max-length", 5, 10)),
    )


def test_the_command_that_removes_a_policy_can_be_typed_whatever_it_is_called() -> None:
    """Anybody who may set policies gives them names."""
    policy = replace(theirs(5, message_ttl=1_000), name="\x1b[2J;rm -rf")

    found = policy_drift(DELAY, Live(), (policy,), (), is_delay=True, vhost="my shop")

    assert found == Refusal(
        "queue delay.1m.queue",
        "policy \\x1b[2J;rm -rf (priority 5) changes what it does",
        "narrow the pattern of policy \\x1b[2J;rm -rf, or remove it: "
        "rabbitmqctl clear_policy -p 'my shop' $'\\x1b[2J;rm -rf'",
        (Difference("message-ttl", SECOND, MINUTE),),
    )


def test_an_operator_policy_is_drift() -> None:
    """It takes another command to be rid of it."""
    assert policy_drift(DELAY, operators(max_length=3), (), (), is_delay=True) == Refusal(
        "queue delay.1m.queue",
        "operator policy limits changes what it does",
        "narrow the pattern of operator policy limits, or remove it: rabbitmqctl clear_operator_policy -p / limits",
        (Difference("max-length", 3, 10),),
    )


def test_a_harmless_policy_is_not_blamed_for_the_operators() -> None:
    """Where the operator policy alone makes the difference, it is the one to name."""
    drift = policy_drift(DELAY, operators(max_length=3), (theirs(queue_mode="lazy"),), (), is_delay=True)

    assert drift is not None
    assert drift.fix.endswith("rabbitmqctl clear_operator_policy -p / limits")


def test_a_business_queue_may_be_governed_by_its_owner() -> None:
    """Only what the file asks of it is checked."""
    assert policy_drift(BUSINESS, Live(), (theirs(message_ttl=5, expires=5),), (), is_delay=False) is None


def test_what_the_file_asks_of_a_business_queue_is_checked() -> None:
    """A lower limit than the file's is drift there too."""
    drift = policy_drift(BUSINESS, Live(), (theirs(max_length=5),), (), is_delay=False)

    assert drift is not None
    assert drift.differences == (Difference("max-length", 5, 10),)


def test_the_type_on_the_broker_decides_who_wins() -> None:
    """A queue whose type the file leaves open may be quorum, where a policy's overflow beats the argument."""
    desired = Queue("orders.queue", Settings(overflow="drop-head"))
    live = Live(queues={"orders.queue": with_settings(desired, type="quorum")})

    drift = policy_drift(desired, live, (theirs(overflow="reject-publish"),), (), is_delay=False)

    assert drift is not None
    assert drift.differences == (Difference("overflow", "reject-publish", "drop-head"),)
