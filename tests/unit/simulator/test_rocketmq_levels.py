"""RocketMQ's level strings."""

import pytest
from delayctl.simulator.rocketmq import Broker, BrokerStartError, VirtualClock, parse_delay_level
from delayctl.simulator.rocketmq_levels import DEFAULT_MESSAGE_DELAY_LEVEL, DelayLevels, level_of, queue_id_of
from delayctl.simulator.rocketmq_pace import is_due

from tests.unit.simulator.rocketmq_vectors import (
    DEFAULT_LEVELS,
    DEFAULT_TABLE,
    DELIVER_TIMESTAMP,
    DUE_RULE,
    PARSE,
    PARSE_FAILURE_EXIT_CODE,
    Parse,
)


@pytest.mark.parametrize("case", PARSE, ids=lambda case: repr(case.text[:20]))
def test_a_level_string_is_read_as_java_reads_it(case: Parse) -> None:
    """Table, largest level and error."""
    found = parse_delay_level(case.text)

    assert found == DelayLevels(found.table, case.max_level, case.error)
    assert dict(found.table) == case.table


@pytest.mark.parametrize("text", [case.text for case in PARSE if case.error])
def test_a_broker_does_not_start_with_a_string_that_it_cannot_read(text: str) -> None:
    """It exits with -3."""
    with pytest.raises(BrokerStartError) as raised:
        Broker(VirtualClock(), message_delay_level=text)

    assert raised.value.exit_code == PARSE_FAILURE_EXIT_CODE


def test_a_level_waits_in_the_queue_before_its_number() -> None:
    """Both ways, for the default levels."""
    found = [(level_of(queue), queue_id_of(level), DEFAULT_TABLE[level]) for level, queue, _ in DEFAULT_LEVELS]

    assert found == DEFAULT_LEVELS


@pytest.mark.parametrize(("level", "stored", "due"), DELIVER_TIMESTAMP)
def test_a_message_is_due_its_delay_after_it_was_stored(level: int, stored: int, due: int) -> None:
    """A level that isn't in the table counts as a second."""
    assert parse_delay_level(DEFAULT_MESSAGE_DELAY_LEVEL).deliver_timestamp(level, stored) == due


def test_a_due_time_beyond_64_bits_lies_in_the_past() -> None:
    """The sum wraps, as the product does."""
    levels = parse_delay_level("9223372036854775s")

    assert levels.deliver_timestamp(1, 1_000) == -(2**63) + 192


@pytest.mark.parametrize(("due", "now", "delay", "is_delivered"), DUE_RULE)
def test_a_message_is_delivered_when_due_or_due_too_far_ahead(
    due: int, now: int, delay: int, is_delivered: bool
) -> None:
    """The clock-correction rule."""
    assert is_due(due, now, delay) is is_delivered
