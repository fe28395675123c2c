"""One channel of a client: what it asks for is done, and what it publishes is answered."""

from functools import partial

from delayctl.publishers.frames import Frame
from delayctl.simulator.rabbitmq_message import Properties, Publication
from delayctl.testing.consuming import Consuming
from delayctl.testing.content import Content
from delayctl.testing.contents import to_model
from delayctl.testing.declarations import declare
from delayctl.testing.host import Host
from delayctl.testing.refusals import (
    NOT_IMPLEMENTED,
    PRECONDITION_FAILED,
    UNEXPECTED_FRAME,
    ChannelRefusal,
    ConnectionRefusal,
)
from delayctl.testing.session import Session
from delayctl.testing.wire import encode, making_sense
from pika import spec
from pika.amqp_object import Method


class Channel:
    """A channel of a session."""

    def __init__(self, session: Session, number: int, host: Host) -> None:
        self._session, self._number, self._host = session, number, host
        self._begun: Content | None = None
        self._is_confirming = False
        self._published = 0
        self._consuming = Consuming(session, number, host)
        self._is_closed = False

    def take(self, frame: Frame, method: Method | None) -> None:
        """Take in a frame; `method` is what is in it, where it is one."""
        if self._begun is not None:
            if self._begun.take(frame):
                begun, self._begun = self._begun, None
                self._publish(begun)
        elif method is None:
            raise ConnectionRefusal(UNEXPECTED_FRAME, "expected a method, got the content of a message")
        else:
            self._obey(method)

    def close(self) -> None:
        """Give back what was not acknowledged, and stop consuming."""
        self._is_closed = True
        self._consuming.close()

    def _answer(self, method: Method, *, unless: bool = False) -> None:
        if not unless:
            self._session.send(self._number, method)

    def _obey(self, method: Method) -> None:
        match method:
            case spec.Basic.Publish():
                self._begun = Content(method)
                self._host.begin_publish(self._session)
            case spec.Basic.Ack():
                self._consuming.settle(method.delivery_tag, multiple=method.multiple, dispose=self._host.ack)
            case spec.Basic.Nack():
                dispose = partial(self._host.nack, requeue=method.requeue)
                self._consuming.settle(method.delivery_tag, multiple=method.multiple, dispose=dispose)
            case spec.Basic.Reject():
                dispose = partial(self._host.reject, requeue=method.requeue)
                self._consuming.settle(method.delivery_tag or 0, multiple=False, dispose=dispose)
            case spec.Basic.Get():
                self._consuming.get(method)
            case spec.Basic.Consume():
                self._consuming.consume(method)
            case spec.Basic.Cancel():
                self._consuming.cancel(method)
            case spec.Basic.Qos():
                self._consuming.qos(method)
            case spec.Basic.Recover() | spec.Basic.RecoverAsync():
                self._consuming.recover(method)
            case spec.Confirm.Select():
                self._is_confirming = True
                self._answer(spec.Confirm.SelectOk(), unless=method.nowait)
            case spec.Channel.Flow():
                raise ConnectionRefusal(NOT_IMPLEMENTED, "active=false")
            case _:
                self._answer(declare(self._host, self._session, method), unless=getattr(method, "nowait", False))

    # Publishing.

    def _publish(self, content: Content) -> None:
        method = content.method
        if method.immediate:
            raise ConnectionRefusal(NOT_IMPLEMENTED, "immediate=true")
        self._host.may_publish(method.exchange)
        with making_sense("a content header"):
            headers, properties = to_model(content.header)
        self._check(properties)
        self._published += self._is_confirming
        tag = self._published if self._is_confirming else None
        if self._host.faults.refuses_this():
            self._confirm(tag, is_ack=False)
        else:
            self._host.model.publish(
                method.exchange,
                method.routing_key,
                content.body,
                headers=headers,
                properties=properties,
                mandatory=method.mandatory,
                on_answer=lambda publication: self._host.faults.answer(
                    partial(self._published_as, content, tag, publication)
                ),
            )

    def _check(self, properties: Properties) -> None:
        user, mine, expiration = properties.user_id, self._session.username, properties.expiration
        if user is not None and user != mine:
            text = f"user_id property set to '{user}' but authenticated user was '{mine}'"
            raise ChannelRefusal(PRECONDITION_FAILED, text)
        if expiration is not None and not (expiration.isascii() and expiration.isdigit()):
            raise ChannelRefusal(PRECONDITION_FAILED, f"invalid expiration '{expiration}': no_integer")

    def _published_as(self, content: Content, tag: int | None, publication: Publication) -> None:
        """Tell what became of a message: returned first, then confirmed or refused."""
        if self._is_closed:
            return
        if publication.is_returned:
            method = content.method
            back = spec.Basic.Return(312, "NO_ROUTE", method.exchange, method.routing_key)
            self._session.line.send(encode(self._number, back) + content.frames(self._number, self._session.frame_max))
        self._confirm(tag, is_ack=publication.is_confirmed)

    def _confirm(self, tag: int | None, *, is_ack: bool) -> None:
        if tag is not None:
            self._answer(spec.Basic.Ack(tag) if is_ack else spec.Basic.Nack(tag))
