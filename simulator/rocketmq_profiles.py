"""Which RocketMQ is meant: releases differ in how they poll, fail, write offsets and bury messages."""

from dataclasses import dataclass, replace
from enum import Enum


class Recording(Enum):
    """Which offset a run of the deliver loop records for what it has delivered."""

    RUN_END = "where the run ended"
    RUN_START = "the run's start plus one, however much it delivered"
    LAST_DELIVERED = "the last delivered plus one"


class OnError(Enum):
    """What an exception while a message is looked up, converted or put does to its level."""

    DROP_AT_ONCE = "the message is dropped and the run goes on"
    BLOCK = "the same message is tried again every 100 ms"
    DROP = "the message is dropped, the next one follows 100 ms later"


class OrderlyEnd(Enum):
    """Where an ordered consumer's message goes once its maximum is reached."""

    DELAYED_DLQ = "to the dead-letter queue, after the delay of level 3 + r"
    RETRY_TOPIC = "to the retry topic, again and again"
    DLQ = "to the dead-letter queue at once"


@dataclass(frozen=True, slots=True)
class Profile:
    """A group of releases that behave alike; the defaults are those of 5.3.3."""

    name: str
    releases: str
    is_5: bool = True
    exact_countdown: bool = False  # One java.util.Timer on the wall clock, instead of polling on a monotonic one.
    records_not_due: bool = True
    failed_put_wait: int = 100
    failed_put_skips: bool = False
    recording: Recording = Recording.LAST_DELIVERED
    on_error: OnError = OnError.DROP
    survives_java_error: bool = True
    corrects_offsets: bool = True
    corrects_in_run: bool = True
    persists_at_shutdown: bool = True
    dlq_keeps_delay: bool = False
    dlq_readable: bool = True
    checks_expired: bool = True  # No second retry copy of a message that timed out.
    first_resend_pause: int = 1  # In steps of 100 ms.
    orderly_end: OrderlyEnd = OrderlyEnd.DLQ
    strips_wait: bool = False  # Of a sent message that is not delayed, WAIT is not stored.


P6 = Profile("P6", "5.3.3 and later")
P5 = replace(P6, name="P5", releases="5.1.1 - 5.3.2", failed_put_skips=True, survives_java_error=False)
P5_EARLY = replace(
    P5,
    name="P5_EARLY",
    releases="5.0.0 - 5.1.0",
    checks_expired=False,
    first_resend_pause=0,
    orderly_end=OrderlyEnd.RETRY_TOPIC,
)
P4 = replace(
    P6,
    name="P4",
    releases="4.9.4 - 4.9.8",
    is_5=False,
    records_not_due=False,
    on_error=OnError.BLOCK,
    survives_java_error=False,
    checks_expired=False,
    first_resend_pause=0,
    orderly_end=OrderlyEnd.DELAYED_DLQ,
    strips_wait=True,
)
# 4.9.2 and 4.9.3 correct offsets while loading and then read the raw file again.
P3 = replace(P4, name="P3", releases="4.9.3", recording=Recording.RUN_START, corrects_offsets=False)
P2 = replace(
    P3,
    name="P2",
    releases="4.9.2",
    exact_countdown=True,
    records_not_due=True,
    failed_put_wait=10_000,
    recording=Recording.RUN_END,
    on_error=OnError.DROP_AT_ONCE,
    persists_at_shutdown=False,
)
P1 = replace(P2, name="P1", releases="4.9.0 - 4.9.1", corrects_in_run=False, dlq_keeps_delay=True, dlq_readable=False)

PROFILES = {profile.name: profile for profile in (P1, P2, P3, P4, P5_EARLY, P5, P6)}
