"""When a calibration is not begun."""

import pytest
from delayctl.publishers.calibrate import check_policies, check_room
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.topology.gauge import NodeRoom
from delayctl.topology.live import Live
from delayctl.topology.model import Policy, Queue, Settings

ROOM = NodeRoom("rabbit@a", memory_limit=5_000_000, memory_used=1_000_000, disk_free=9_000_000, disk_limit=1_000_000)
QUEUE = Queue("delay.calibration.1.queue", Settings(type="classic", ttl=Duration.parse("1d")))


def policy(pattern: str, **definition: object) -> Policy:
    """A policy of somebody else's."""
    return Policy("theirs", pattern, "queues", 0, tuple(sorted(definition.items())))


def test_an_alarm_forbids_it() -> None:
    """Whichever node has it: it blocks the publishers of all."""
    alarmed = NodeRoom("rabbit@b", 10**12, 0, 10**12, 0, has_alarm=True)

    with pytest.raises(DelayctlError, match="node rabbit@b has an alarm"):
        check_room((ROOM, alarmed), 1, 1)


def test_no_more_than_a_quarter_of_what_is_left_is_taken() -> None:
    """Of memory and of disk, and it is said how many would do."""
    check_room((ROOM,), 1_000, 1_000)

    with pytest.raises(DelayctlError) as refused:
        check_room((ROOM,), 1_001, 1_000)
    assert "4,000,000 bytes of memory left" in refused.value.what
    assert refused.value.fix == "try fewer: --calibrate-messages 1000"

    with pytest.raises(DelayctlError, match="1,000 bytes of disk left"):
        check_room((NodeRoom("rabbit@a", 10**12, 0, 2_000, 1_000),), 1, 1_000)


@pytest.mark.parametrize(
    "live",
    [
        Live("3.10.8", policies=(policy(".*", **{"max-length": 10}),)),
        Live("3.10.8", policies=(policy("^delay", **{"dead-letter-exchange": "delay.exchange"}),)),
        Live("3.10.8", operator_policies=(policy(".*", **{"message-ttl": 5}),)),
    ],
)
def test_a_policy_that_has_a_say_forbids_it(live: Live) -> None:
    """What it pushes out would come out among real messages."""
    with pytest.raises(DelayctlError, match="by the policy theirs"):
        check_policies(QUEUE, live)


def test_a_policy_that_changes_nothing_is_fine() -> None:
    """Because it is for others, or because it asks for less than the queue."""
    harmless = policy(".*", **{"message-ttl": 10**10, "queue-version": 2})

    check_policies(QUEUE, Live("3.10.8", policies=(policy("^orders", **{"max-length": 10}), harmless)))
