"""What is done with one delivery: its handler is asked, and what failed is sent on before it is acknowledged."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from delayctl.consumers.again import Plan, forward
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Done, Outcome, Park, Retry
from delayctl.consumers.workers import Ticket
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.errors import DelayctlError

Handler = Callable[[Message], Outcome]

_LOG = logging.getLogger("delayctl.consumer")


class Treatment:
    """Handlers by queue, and what becomes of what they could not deal with."""

    def __init__(
        self, handlers: Mapping[str, Handler], plans: Mapping[str, Plan], publisher: DelayPublisher | None
    ) -> None:
        self._handlers = handlers
        self._plans = plans
        self._publisher = publisher

    def treat(self, ticket: Ticket) -> None:
        """Deal with a delivery; the ticket is finished now, or when the broker has confirmed what was sent on."""
        came = ticket.delivery
        message = Message(came.body, came.queue, came.redelivered, came.exchange, came.key, came.header)
        outcome = self._ask(came.queue, message)
        plan = self._plans.get(came.queue)
        if isinstance(outcome, Done):
            ticket.done()
        elif plan is None or self._publisher is None:
            ticket.give_back()  # Nothing leads back to this queue but the broker itself.
        elif not ticket.is_void:
            self._send_on(message, outcome, plan, ticket, self._publisher)

    def _ask(self, queue: str, message: Message) -> Done | Retry | Park:
        try:
            outcome: object = self._handlers[queue](message)
        except BaseException as error:  # A handler may raise anything: that is a retry, and no end of the worker.
            _LOG.warning("the handler of %s failed: %s: %s", queue, type(error).__name__, error)
            return Retry(reason=f"{type(error).__name__}: {error}")
        if outcome is None:
            return Done()
        if isinstance(outcome, Done | Retry | Park):
            return outcome
        _LOG.error("the handler of %s answered %r: that is none of Done, Retry, Park and None", queue, outcome)
        return Retry(reason=f"the handler answered with a {type(outcome).__name__}")

    def _send_on(
        self, message: Message, outcome: Retry | Park, plan: Plan, ticket: Ticket, publisher: DelayPublisher
    ) -> None:
        """Publish the message anew; the old one is acknowledged only when the new one is confirmed."""
        try:
            onward = forward(message, outcome, plan, time.time_ns() // 1_000_000)
            sent = publisher.publish(
                message.body,
                key=onward.key,
                level=onward.level,
                exchange=onward.exchange,
                message_id=message.message_id,
                properties=onward.properties,
            )
        except (DelayctlError, ValueError) as error:
            _LOG.error("a message of %s can't be sent on: %s", message.queue, error)
            ticket.give_back()
            return
        sent.add_done_callback(lambda sent: _answered(sent, ticket))


def _answered(sent: Future[str], ticket: Ticket) -> None:
    error = sent.exception()
    if error is None:
        ticket.done()
    else:
        _LOG.error("a message of %s was not taken: %s", ticket.delivery.queue, error)
        ticket.give_back()
