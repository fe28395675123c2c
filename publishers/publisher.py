"""DelayPublisher: messages that arrive later, each with a future that tells what became of it."""

import atexit
import itertools
import logging
import os
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from delayctl.publishers.choice import ROUNDINGS, Rounding, Way, Ways
from delayctl.publishers.clock import epoch_ms
from delayctl.publishers.connection import HEARTBEAT_S, Connection
from delayctl.publishers.contract import ContentMaker
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.engine import Engine
from delayctl.publishers.errors import NotConfirmed, NotSendable
from delayctl.publishers.frames import CHANNEL, NotEncodable, Properties, publish_method
from delayctl.publishers.given import as_bytes, checked_name, duration, epoch_ms_of, milliseconds, wrong_type
from delayctl.publishers.known import Urls, brokers_at, known_ways
from delayctl.publishers.outbox import Outbox
from delayctl.publishers.window import Entry
from delayctl.topology.access import DEFAULT_URL
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError, NotPermitted, Refused
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec
from delayctl.topology.wording import quoted

_LOG = logging.getLogger("delayctl.publisher")
DEFAULT_WINDOW = 4_096
_MOST_CACHED = 4_096


class DelayPublisher:
    """Publishes to the delays of a topology. Thread-safe; declares nothing.

    >>> with DelayPublisher("amqp://guest:guest@127.0.0.1:5672/", topology="topology.yaml") as publisher:
    ...     publisher.publish(b"{}", key="order.created", delay="15m").result(timeout=10)
    """

    def __init__(
        self,
        url: Urls = DEFAULT_URL,
        *,
        topology: str | Path | Spec | Topology | Ways | None = None,
        values: Mapping[str, object] | None = None,
        prefix: str = "",
        rounding: Rounding = "refuse",
        window: int = DEFAULT_WINDOW,
        give_up_after_s: float = 60.0,
        heartbeat_s: int = HEARTBEAT_S,
        name: str = "delayctl publisher",
        management_url: str | None = None,
        clock: Callable[[], int] = epoch_ms,
    ) -> None:
        """Connect, and make sure that the delays are there.

        `url` may be a list: any of these brokers will do. `topology` is a file or what was read from one; without it
        the broker's own record of what was applied is read over the management API. `rounding` says what becomes of a
        delay that is no level and that no ladder takes. A broker that is silent for twice `heartbeat_s` is taken for lost; what was not
        confirmed is sent again over the next connection, and fails when there is none after `give_up_after_s`.
        `clock` tells the time in milliseconds since 1970, by which messages are stamped with when they are due.
        """
        if window < 1 or heartbeat_s < 1 or rounding not in ROUNDINGS:
            raise BadOption(
                "window and heartbeat_s are at least 1, rounding is one of " + ", ".join(ROUNDINGS),
                fix="correct the one that is not",
            )
        brokers = brokers_at(url, management_url=management_url)
        vhost, self._ways = known_ways(topology, values or {}, prefix, brokers)
        brokers = [access if access.vhost else access.at(vhost) for access in brokers]
        self._rounding: Rounding = rounding
        self._clock = clock
        self._ids = map(f"{os.urandom(10).hex()}{{:012x}}".format, itertools.count(1))
        self._chosen: dict[str, tuple[Way, int]] = {}  # By the delay as it is written, with how long that is.
        self._methods: dict[tuple[str, str], bytes] = {}
        self._outbox = Outbox(window)
        self._engine = Engine(
            brokers,
            self._outbox,
            name=name,
            heartbeat_s=heartbeat_s,
            give_up_after_s=give_up_after_s,
            prepare=self._check_delays,
        )
        self._content = ContentMaker(self._engine.frame_max)
        atexit.register(self._close_at_exit)

    def publish(
        self,
        body: bytes | bytearray | memoryview | str,
        *,
        key: str,
        delay: str | Duration | timedelta | None = None,
        due: datetime | None = None,
        level: str | None = None,
        exchange: str | None = None,
        message_id: str | None = None,
        headers: Mapping[str, Any] | None = None,
        properties: Properties | None = None,
    ) -> Delivery:
        """Publish a message that comes out with `key` after a delay, at a due time, or after a level.

        A delay is a text such as "15m", or a timedelta: a number is refused, since it has no unit. Without any of
        these it goes to `exchange`, or else comes out at once. The future resolves to the message id
        once the broker has it safe. Waits while too many messages are unconfirmed. Without `message_id` that of
        `properties` counts, else it is a new one.
        """
        way, due_ms = self._way(delay, due, level, exchange)
        return self.send(
            body, way, key=key, due_ms=due_ms, message_id=message_id, headers=headers, properties=properties
        )

    @property
    def ways(self) -> Ways:
        """The levels that can be chosen from, for `send`."""
        return self._ways

    def send(
        self,
        body: bytes | bytearray | memoryview | str,
        way: Way,
        *,
        key: str,
        due_ms: int = 0,
        message_id: str | None = None,
        headers: Mapping[str, Any] | None = None,
        properties: Properties | None = None,
    ) -> Delivery:
        """Publish as `publish` does, by a way that the caller has chosen; `due_ms` is what the message is stamped with."""
        try:
            if properties is not None and properties.expiration is not None and way.level is not None:
                raise DelayctlError(
                    "a message that waits in a delay has no expiration of its own: it would leave the delay by it",
                    fix="leave out expiration",
                )
            if not message_id:
                message_id = (properties.message_id if properties is not None else None) or next(self._ids)
            payload = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else as_bytes(body)
            method = self._methods.get((way.exchange, key)) or self._method(way.exchange, key)
            content = self._content.make(
                payload,
                message_id,
                due_ms=due_ms,
                level=way.level,
                headers=headers,
                properties=properties,
                units=way.units,
            )
        except (NotEncodable, UnicodeEncodeError, OverflowError, RecursionError) as error:
            raise NotSendable(error) from error
        except (AttributeError, TypeError) as error:  # Looked for afterwards: every message would pay for a check.
            raise NotSendable(wrong_type(key, way.exchange, headers, properties) or error) from error
        delivery = Delivery()
        self._engine.hand_over(Entry(message_id, way.exchange, key, method + content, len(payload), delivery))
        return delivery

    @property
    def is_blocked(self) -> bool:
        """Whether the broker is short of memory or disk and takes no messages now; they wait here."""
        return self._engine.is_blocked

    @property
    def unanswered(self) -> int:
        """How many messages the broker has not answered yet."""
        return self._outbox.count

    def flush(self, timeout: float | None = None) -> None:
        """Wait until every message so far was answered.

        Raises NotConfirmed with those that were not, in time, and those that failed with nobody looking at their
        futures.
        """
        if not self._engine.is_inherited:  # Else all that was taken is another process's to tell of.
            self._conclude(self._answered(timeout))

    def close(self, timeout: float | None = 30.0) -> None:
        """Flush and disconnect; raises NotConfirmed as `flush` does, and what it names has failed then.

        A program that ends without it does the same then, and logs what was not confirmed.
        """
        if self._engine.is_inherited:
            return
        unanswered = self._answered(timeout)
        self._engine.close()
        atexit.unregister(self._close_at_exit)
        self._conclude(unanswered)

    def _close_at_exit(self) -> None:
        """Close what the program has not closed: with it goes the thread that sends, whatever is still here."""
        try:
            self.close()
        except NotConfirmed as error:
            _LOG.error("the program ended without closing its publisher: %s", error)

    def _answered(self, timeout: float | None) -> tuple[str, ...]:
        if self._engine.is_current_thread:
            raise DelayctlError(
                "the callback of a message can't wait for others: it is they who would have to call it",
                fix="flush and close from another thread",
            )
        return self._outbox.wait_until_answered(timeout)

    def _conclude(self, unanswered: tuple[str, ...]) -> None:
        failures, more = self._outbox.unseen_failures()
        if unanswered or failures or more:
            raise NotConfirmed(unanswered, failures, more=more)

    def __enter__(self) -> "DelayPublisher":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except NotConfirmed:
            if error is None:  # Otherwise what went wrong first says more.
                raise

    def _way(
        self, delay: str | Duration | timedelta | None, due: datetime | None, level: str | None, exchange: str | None
    ) -> tuple[Way, int]:
        # Counted without a loop: every message pays for it.
        if (delay is not None) + (due is not None) + (level is not None) + (exchange is not None) > 1:
            raise DelayctlError("a message has one of delay, due, level and exchange", fix="leave out the others")
        now_ms = self._clock()
        if isinstance(delay, str):
            way, wait_ms = self._chosen.get(delay) or self._choose(delay)
        elif delay is not None:
            wait_ms = milliseconds(delay)
            way = self._ways.for_wait(wait_ms, self._rounding)
        elif due is not None:
            due_ms = epoch_ms_of(due)
            return self._ways.for_wait(due_ms - now_ms, self._rounding), due_ms
        elif level is not None:
            way = self._ways.at_level(checked_name(level))
            wait_ms = way.wait_ms
        elif exchange is not None:
            return Way(exchange), 0
        else:
            way, wait_ms = self._ways.for_wait(0, self._rounding), 0
        return way, now_ms + wait_ms  # What was meant: a level that is longer or shorter makes it late or early.

    def _choose(self, delay: str) -> tuple[Way, int]:
        wait_ms = duration(delay).ms
        chosen = self._ways.for_wait(wait_ms, self._rounding), wait_ms
        if len(self._chosen) < _MOST_CACHED:
            self._chosen[delay] = chosen
        return chosen

    def _method(self, exchange: str, key: str) -> bytes:
        method = publish_method(CHANNEL, exchange, key)
        if len(self._methods) < _MOST_CACHED:
            self._methods[exchange, key] = method
        return method

    def _check_delays(self, connection: Connection) -> None:
        for exchange in self._ways.exchanges:
            try:
                connection.check_exchange(exchange)
            except NotPermitted:
                continue  # A user with few rights may not even look; whether it may publish shows when it does.
            except Refused as error:
                raise DelayctlError(
                    f"the exchange {quoted(exchange)} is not on the broker",
                    fix="declare it: delayctl apply topology.yaml",
                ) from error
