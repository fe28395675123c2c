"""What can become of a message that was not confirmed.

DelayctlError
└── NotPublished
    ├── Unroutable        no queue takes it: the exchange is gone, or nothing is bound for it
    ├── Nacked            the broker refused it: a queue is full, or could not keep it
    ├── TooLarge          larger than the broker takes
    ├── WriteRefused      the user may not publish there
    ├── ConnectionLost    the connection broke and was not restored in time: it may have arrived or not
    └── PublisherClosed   the publisher was closed before the broker answered: it may have arrived or not
NotSendable               it can't be written as a message: nothing was sent
NotConfirmed              what a flush or a close says of all that was not confirmed
"""

from collections.abc import Sequence

from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import plural


class NotPublished(DelayctlError):
    """The broker did not confirm a message."""

    def __init__(self, what: str, *, fix: str, message_id: str) -> None:
        super().__init__(what, fix=fix)
        self.message_id = message_id


class Unroutable(NotPublished):
    """No queue takes the message."""


class Nacked(NotPublished):
    """The broker refused the message."""


class TooLarge(NotPublished):
    """The message is larger than the broker takes."""


class WriteRefused(NotPublished):
    """The user may not publish to the exchange."""


class ConnectionLost(NotPublished):
    """The connection broke and was not restored in time; the message may have arrived or not."""


class PublisherClosed(NotPublished):
    """The publisher was closed before the broker answered; the message may have arrived or not."""


class NotSendable(DelayctlError):
    """A message can't be written as AMQP asks for; nothing was sent."""

    def __init__(self, error: Exception | str) -> None:
        why = "its headers are nested too deeply" if isinstance(error, RecursionError) else error
        super().__init__(f"the message can't be sent: {why}", fix="correct its body, key, headers or id")


class NotConfirmed(DelayctlError):
    """What a flush or a close found not to be confirmed.

    `message_ids` are all of them; `failures` are the errors of those that failed while nobody looked at their futures.
    Of these the first 10,000 are named; `more` counts the others.
    """

    def __init__(self, unanswered: Sequence[str], failures: Sequence[NotPublished] = (), *, more: int = 0) -> None:
        self.failures, self.more = tuple(failures), more
        failed = [failure.message_id for failure in failures]
        self.message_ids = tuple(dict.fromkeys((*unanswered, *failed)))
        first = f", {plural(len(failed) + more, 'failure')}; the first: {failures[0].what}" if failures else ""
        beyond, named = (f" and {more:,} more", "; flush more often to have all of them named") if more else ("", "")
        super().__init__(
            f"{plural(len(self.message_ids), 'message')}{beyond} not confirmed{first}",
            fix=f"publish them again with the same message_id, or allow more time{named}",
        )
