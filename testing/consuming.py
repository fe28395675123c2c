"""What one channel of a client consumes, gets and acknowledges."""

from collections.abc import Callable, Iterable
from functools import partial

from delayctl.simulator.rabbitmq_message import Delivery
from delayctl.testing.contents import to_wire
from delayctl.testing.host import Host, Seat
from delayctl.testing.refusals import (
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    ChannelRefusal,
    ConnectionRefusal,
)
from delayctl.testing.session import Session
from delayctl.testing.turns import Push
from delayctl.testing.wire import encode_content
from pika import spec
from pika.amqp_object import Method

Place = Callable[[int], Method]  # Where a message comes from, as a method with its delivery tag.


class Consuming:
    """The consumers of a channel, and what was delivered over it."""

    def __init__(self, session: Session, number: int, host: Host) -> None:
        self._session, self._number, self._host = session, number, host
        self._prefetch = 0
        self._last_tag = 0
        self._held: dict[int, Push] = {}  # Delivered, not acknowledged, by delivery tag.
        self._seats: dict[str, Seat] = {}  # By consumer tag.

    def close(self) -> None:
        """Give back what was not acknowledged, and stop consuming."""
        for seat in list(self._seats.values()):
            self._host.vacate(seat)
        held, self._held = list(self._held.values()), {}
        waiting = [push for seat in self._seats.values() for push in seat.pushes if push not in held]
        self._seats.clear()
        self._host.turns.settle([*held, *waiting])
        for push in [*held, *waiting]:
            self._host.model.reject(push.delivery, requeue=True)

    def _answer(self, method: Method, *, unless: bool = False) -> None:
        if not unless:
            self._session.send(self._number, method)

    def qos(self, method: spec.Basic.Qos) -> None:
        """Note how much consumers may have at once."""
        if method.prefetch_size:
            raise ConnectionRefusal(NOT_IMPLEMENTED, f"prefetch_size!=0 ({method.prefetch_size})")
        self._prefetch = method.prefetch_count
        self._answer(spec.Basic.QosOk())

    def consume(self, method: spec.Basic.Consume) -> None:
        """Begin to hand out messages."""
        tag = method.consumer_tag or self._host.new_name("amq.ctag-")
        if tag in self._seats:
            raise ConnectionRefusal(NOT_ALLOWED, f"attempt to reuse consumer tag '{tag}'")
        seat = self._host.seat(self._session, method.queue, tag, self._cancelled, exclusive=method.exclusive)
        self._seats[tag] = seat
        self._answer(spec.Basic.ConsumeOk(tag), unless=method.nowait)
        self._host.take_seat(seat, partial(self._offer, seat), prefetch=self._prefetch, no_ack=method.no_ack)

    def _offer(self, seat: Seat, delivery: Delivery) -> None:
        place = partial(_deliver, seat.tag, delivery)
        if not delivery.is_open:  # It needs no acknowledgement.
            self._send(delivery, place)
            return
        push = Push(delivery, lambda push: self._hold(seat, push, place))
        seat.pushes[push] = None
        self._host.turns.offer(push)

    def _hold(self, seat: Seat, push: Push, place: Place) -> None:
        seat.pushes.pop(push, None)
        self._held[self._send(push.delivery, place)] = push

    def _send(self, delivery: Delivery, place: Place) -> int:
        self._last_tag += 1
        properties = to_wire(delivery.headers, delivery.properties)
        method = place(self._last_tag)
        frames = encode_content(self._number, method, properties, delivery.body, self._session.frame_max)
        self._session.line.send(frames)
        return self._last_tag

    def get(self, method: spec.Basic.Get) -> None:
        """Hand out one message, if there is one."""
        queue = self._host.may_use(self._session, method.queue)
        delivery = self._host.model.get(queue, no_ack=method.no_ack)
        if delivery is None:
            self._answer(spec.Basic.GetEmpty())
            return
        tag = self._send(delivery, partial(_got, delivery, self._host.model.count(queue).ready))
        if not method.no_ack:
            self._held[tag] = Push(delivery, lambda _: None)

    def cancel(self, method: spec.Basic.Cancel) -> None:
        """Hand out no more to a consumer; what it has stays with it."""
        tag = method.consumer_tag or ""
        seat = self._seats.pop(tag, None)
        if seat is not None:
            self._host.vacate(seat)
            unsent = list(seat.pushes)
            self._host.turns.settle(unsent)
            for push in unsent:
                self._host.model.reject(push.delivery, requeue=True)
        self._answer(spec.Basic.CancelOk(tag), unless=method.nowait)

    def _cancelled(self, seat: Seat) -> None:
        """The queue is gone: the client is told, and what it holds is nobody's."""
        self._seats.pop(seat.tag, None)
        self._host.turns.settle(seat.pushes)
        self._answer(spec.Basic.Cancel(seat.tag, nowait=True))

    def settle(self, tag: int, *, multiple: bool, dispose: Callable[[Delivery], object]) -> None:
        """Deal with a delivery, or with all up to it."""
        if tag not in self._held and not (multiple and (tag == 0 or tag <= self._last_tag)):
            raise ChannelRefusal(PRECONDITION_FAILED, f"unknown delivery tag {tag}")
        tags = [held for held in self._held if tag in (0, held) or held <= tag] if multiple else [tag]
        self._dispose([self._held.pop(each) for each in tags], dispose)

    def recover(self, method: spec.Basic.Recover | spec.Basic.RecoverAsync) -> None:
        """Give back all that is held."""
        if not method.requeue:
            raise ConnectionRefusal(NOT_IMPLEMENTED, "requeue=false")
        held, self._held = list(self._held.values()), {}
        self._dispose(held, partial(self._host.model.reject, requeue=True))
        self._answer(spec.Basic.RecoverOk(), unless=isinstance(method, spec.Basic.RecoverAsync))

    def _dispose(self, pushes: Iterable[Push], dispose: Callable[[Delivery], object]) -> None:
        for push in pushes:
            dispose(push.delivery)
            self._host.turns.settle([push])


def _deliver(consumer: str, delivery: Delivery, tag: int) -> Method:
    return spec.Basic.Deliver(consumer, tag, delivery.redelivered, delivery.exchange, delivery.key)


def _got(delivery: Delivery, left: int, tag: int) -> Method:
    return spec.Basic.GetOk(tag, delivery.redelivered, delivery.exchange, delivery.key, left)
