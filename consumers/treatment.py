"""What is done with one delivery: its handler is asked, and what failed is sent on before it is acknowledged."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from delayctl.consumers.again import ByBroker, Forward, Plan, forward, without_history
from delayctl.consumers.message import Message
from delayctl.consumers.outcome import Done, Outcome, Park, Retry
from delayctl.consumers.reasons import told
from delayctl.consumers.workers import Ticket
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import NotSendable
from delayctl.publishers.frames import decode_properties
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.canary import CANARY
from delayctl.topology.errors import DelayctlError

Handler = Callable[[Message], Outcome]

OnFailure = Callable[[Message, BaseException], object]


class Note(Protocol):
    """Told what is settled and when that came in, before the ticket is finished."""

    def __call__(self, message: Message, received_ms: int, *, is_cancelled: bool = False) -> object:
        """Write it down."""


_LOG = logging.getLogger("delayctl.consumer")
_HERE = threading.local()
_MARK = CANARY.encode()


def is_canary(header: bytes) -> bool:
    """Say whether a message, by its encoded header, was sent by `delayctl verify`: it is no handler's business."""
    # The text is looked for first: to decode the headers of every message would cost more than the rest.
    return _MARK in header and CANARY in (decode_properties(header).headers or {})


def is_in_handler() -> bool:
    """Whether the calling thread is inside the handler of a consumer."""
    return getattr(_HERE, "is_in_handler", False)


class Treatment:
    """Handlers by queue, and what becomes of what they could not deal with."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        plans: Mapping[str, Plan],
        publisher: DelayPublisher | None,
        clock: Callable[[], int],
        *,
        watchers: Sequence[OnFailure] = (),
        note: Note = lambda *_, **__: None,
        is_cancelled: Callable[[Message], bool] = lambda _: False,
        measure: Callable[[Message, int], object] | None = None,
    ) -> None:
        self._handlers = handlers
        self._plans = plans
        self._publisher = publisher
        self._clock = clock
        self._watchers = watchers
        self._note = note
        self._is_cancelled = is_cancelled
        self._measure = measure
        self._counting = threading.Lock()
        self.cancelled = 0  # Messages that nobody handled.

    def treat(self, ticket: Ticket) -> None:
        """Deal with a delivery; the ticket is finished now, or when the broker has confirmed what was sent on."""
        came = ticket.delivery
        if is_canary(came.header):
            _LOG.debug("a canary of delayctl verify has come to %s", came.queue)
            ticket.done()
            return
        plan = self._plans.get(came.queue)
        is_counted = plan is not None and isinstance(plan.retries, ByBroker)
        message = Message.of(came, is_counted_by_broker=is_counted)
        if self._is_cancelled(message):
            self._drop(message, ticket)
            return
        if self._measure is not None:
            self._measure(message, came.received_ms)
        outcome = self._ask(came.queue, message)
        if isinstance(outcome, Done):
            self._note(message, came.received_ms)
            ticket.done()
        elif plan is None or self._publisher is None:
            ticket.give_back()  # Nothing leads back to this queue but the broker itself.
        elif not ticket.is_void:
            self._send_on(message, outcome, plan, ticket, self._publisher)

    def _drop(self, message: Message, ticket: Ticket) -> None:
        """Settle a message that was cancelled while it waited."""
        with self._counting:
            self.cancelled += 1
        _LOG.info("cancelled: message %s of %s", message.message_id, message.queue)
        self._note(message, ticket.delivery.received_ms, is_cancelled=True)
        ticket.done()

    def _ask(self, queue: str, message: Message) -> Done | Retry | Park:
        try:
            _HERE.is_in_handler = True
            outcome: object = self._handlers[queue](message)
        except BaseException as error:  # A handler may raise anything: that is a retry, and no end of the worker.
            why = told(error)
            _LOG.warning("the handler of %s failed: %s", queue, why)
            self._tell(message, error)
            return Retry(reason=why)
        finally:
            _HERE.is_in_handler = False
        if outcome is None:
            return Done()
        if isinstance(outcome, Done | Retry | Park):
            return outcome
        _LOG.error("the handler of %s answered %r: that is none of Done, Retry, Park and None", queue, outcome)
        return Retry(reason=f"the handler answered with a {type(outcome).__name__}")

    def _tell(self, message: Message, error: BaseException) -> None:
        for watcher in self._watchers:
            try:
                watcher(message, error)
            except BaseException:  # Whoever looks on decides nothing either.
                _LOG.exception("what watches the handler of %s failed itself", message.queue)

    def _send_on(
        self, message: Message, outcome: Retry | Park, plan: Plan, ticket: Ticket, publisher: DelayPublisher
    ) -> None:
        """Publish the message anew; the old one is acknowledged only when the new one is confirmed."""
        try:
            onward = forward(message, outcome, plan, self._clock())
            if onward is None:
                self._try_again(message, outcome, ticket)
                return
            _tell_of_level(message, outcome, onward)
            try:
                sent = _publish(message, onward, publisher)
            except NotSendable:  # Its headers may be too long by what was noted of it.
                sent = _publish(message, without_history(onward), publisher)
        except Exception as error:  # Of the broker's, the message's or the service's making: it is not lost by it.
            why = error if isinstance(error, DelayctlError) else told(error)
            _LOG.error("a message of %s can't be sent on: %s", message.queue, why)
            ticket.give_back()
            return
        sent.add_done_callback(lambda sent: self._answered(sent, message, ticket))

    def _try_again(self, message: Message, outcome: Retry | Park, ticket: Ticket) -> None:
        if isinstance(outcome, Retry) and outcome.level is not None:
            _LOG.error("retries of %s wait by broker: they can't wait in level %s", message.queue, outcome.level)
        self._note(message, ticket.delivery.received_ms)
        ticket.try_again()

    def _answered(self, sent: Future[str], message: Message, ticket: Ticket) -> None:
        error = sent.exception()
        if error is not None:
            _LOG.error("a message of %s was not taken: %s", message.queue, error)
            ticket.give_back()
            return
        self._note(message, ticket.delivery.received_ms)
        ticket.done()


def _tell_of_level(message: Message, outcome: Retry | Park, onward: Forward) -> None:
    """Log that a level of the handler's own choice is none; where it is given up, no level counts."""
    if isinstance(outcome, Retry) and outcome.level is not None and onward.level not in (None, outcome.level):
        _LOG.error("there is no level %s: a message of %s waits in %s", outcome.level, message.queue, onward.level)


def _publish(message: Message, onward: Forward, publisher: DelayPublisher) -> Delivery:
    return publisher.publish(
        message.body,
        key=onward.key,
        level=onward.level,
        exchange=onward.exchange,
        message_id=message.message_id,
        properties=onward.properties,
    )
