"""Which message a closed channel is about, and what is said of it."""

from collections.abc import Callable

from delayctl.publishers.errors import ConnectionLost, NotPublished, PublisherClosed, TooLarge, Unroutable, WriteRefused
from delayctl.publishers.window import Entry
from delayctl.topology.errors import DelayctlError

ACCESS_REFUSED, NOT_FOUND, PRECONDITION_FAILED = 403, 404, 406
_FIRST_FAULT = 500  # Below, a closed connection is somebody's wish; from here on, something we sent is wrong.


def guilty(code: int, text: str, entry: Entry) -> NotPublished | None:
    """What a closed channel means for a message that is named in the broker's text; None where it is not."""
    if code == NOT_FOUND and _names_exchange(text, entry):
        fix = "declare it: delayctl apply topology.yaml"
        return Unroutable(f"there is no exchange '{entry.exchange}'", fix=fix, message_id=entry.message_id)
    if code == ACCESS_REFUSED and _names_exchange(text, entry) and _names_topic(text, entry):
        fix = "let an administrator grant it: delayctl permissions topology.yaml --role publisher"
        return WriteRefused(f"not permitted: {text}", fix=fix, message_id=entry.message_id)
    if code == PRECONDITION_FAILED and "message size" in text and entry.size > _limit_in(text):
        return TooLarge(text, fix="send less, or raise max_message_size on the broker", message_id=entry.message_id)
    return None


def refused(text: str, entry: Entry) -> NotPublished:
    """What is said of a message that was alone when the broker hung up."""
    fix = "correct what the broker complains of"
    return NotPublished(f"the broker does not take the message: {text}", fix=fix, message_id=entry.message_id)


def is_fault(code: int) -> bool:
    """Whether a closed connection is about something that was sent."""
    return code >= _FIRST_FAULT


def lost_by(reason: Exception) -> Callable[[Entry], NotPublished]:
    """What is said of messages when the connection does not come back."""
    what = reason.what if isinstance(reason, DelayctlError) else str(reason)
    return lambda entry: ConnectionLost(
        f"the connection was not restored in time: {what}",
        fix="the message may have arrived: publish it again with the same message_id",
        message_id=entry.message_id,
    )


def left_behind(entry: Entry) -> NotPublished:
    """What is said of messages that a closing publisher leaves unanswered."""
    return PublisherClosed(
        "the publisher was closed before the broker answered",
        fix="flush before closing; publish it again with the same message_id",
        message_id=entry.message_id,
    )


def _names_exchange(text: str, entry: Entry) -> bool:
    return f"exchange '{entry.exchange}'" in text


def _names_topic(text: str, entry: Entry) -> bool:
    return "access to topic '" not in text or f"access to topic '{entry.key}'" in text


def _limit_in(text: str) -> int:
    numbers = [int(word) for word in text.replace("'", " ").split() if word.isdecimal()]
    return min(numbers, default=0)
