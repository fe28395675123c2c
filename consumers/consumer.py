"""DelayConsumer: handlers for queues, with retries that wait in delays and nothing acknowledged before it is safe."""

import inspect
import logging
import random
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from delayctl.consumers.again import ByBroker, InLevels, Parking, Plan
from delayctl.consumers.finished import Finished
from delayctl.consumers.following import Following
from delayctl.consumers.lateness import Lateness
from delayctl.consumers.link import Link
from delayctl.consumers.message import Message
from delayctl.consumers.policy import ByList, Policy, policy_from
from delayctl.consumers.recorder import Recorder
from delayctl.consumers.refusal import refusal
from delayctl.consumers.treatment import Handler, Note, OnFailure, Treatment
from delayctl.consumers.workers import Workers
from delayctl.publishers.clock import epoch_ms
from delayctl.publishers.connection import HEARTBEAT_S, ClosedByBroker, Connection
from delayctl.publishers.errors import NotConfirmed
from delayctl.publishers.known import Urls, brokers_at, read_topology
from delayctl.publishers.publisher import DelayPublisher
from delayctl.topology.access import DEFAULT_URL, Access
from delayctl.topology.arguments import STREAM_OFFSET
from delayctl.topology.errors import BadOption, DelayctlError, Refused, Unreachable
from delayctl.topology.expand import expand
from delayctl.topology.names import Names
from delayctl.topology.spec import RetrySpec, Spec, parking_circle
from delayctl.topology.wording import plural, quoted, shorten

_LOG = logging.getLogger("delayctl.consumer")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_SETTLED_AFTER_S = 1.0  # A connection that breaks sooner is no better than none.
_LOOK_AGAIN_AFTER_S = 15.0  # For a queue that was deleted while others are still consumed.
_LARGEST_PREFETCH = 65_535
_LOST = (ClosedByBroker, OSError, ValueError, struct.error)


class _Unfinished(Exception):
    """There is no more time for what is in hand."""


class DelayConsumer:
    """Consumes the queues it has handlers for. At least once: a message may come again with the same message id.

    >>> consumer = DelayConsumer("amqp://guest:guest@127.0.0.1:5672/", topology="topology.yaml")
    >>> consumer.handle("orders.timeout.queue", lambda message: print(message.text))
    >>> consumer.run()  # until SIGTERM, SIGINT or stop()
    """

    def __init__(
        self,
        url: Urls = DEFAULT_URL,
        *,
        topology: str | Path | Spec,
        values: Mapping[str, object] | None = None,
        workers: int = 4,
        prefetch: int = 200,
        heartbeat_s: int = HEARTBEAT_S,
        stop_within_s: float = 30.0,
        name: str = "delayctl consumer",
        clock: Callable[[], int] = epoch_ms,
    ) -> None:
        """Prepare; nothing is connected before `run`. The retries of each queue are those of the topology.

        `workers` threads call the handlers; of each queue up to `prefetch` messages are fetched ahead. What is not
        finished `stop_within_s` after a stop is left: it was not acknowledged, and comes again. `clock` tells the
        time in milliseconds since 1970, by which retries are stamped.
        """
        if workers < 1 or heartbeat_s < 1 or not 1 <= prefetch <= _LARGEST_PREFETCH:
            raise BadOption(
                f"workers and heartbeat_s are at least 1, prefetch is between 1 and {_LARGEST_PREFETCH:,}",
                fix="correct the one that is not",
            )
        self._spec = topology if isinstance(topology, Spec) else read_topology(topology, values or {})
        self._topology = expand(self._spec)
        self._brokers = [a if a.vhost else a.at(self._spec.vhost or "/") for a in brokers_at(url)]
        self._clock = clock
        self._name, self._workers, self._prefetch, self._heartbeat_s = name, workers, prefetch, heartbeat_s
        self._handlers: dict[str, Handler] = {}
        self._plans: dict[str, Plan] = {}
        self._watchers: list[OnFailure] = []
        self._recorder: Recorder | None = None
        self._lateness: Lateness | None = None
        self._stop_within_s = stop_within_s
        self._is_stopping = False
        self._stop_by = 0.0
        self._finished: Finished | None = None  # While it runs.
        self._treatment: Treatment | None = None
        self._offsets: dict[str, Mapping[str, str]] = {}  # Where to begin with queues that are streams.
        self._is_strict = True  # Trouble at the start is raised.
        self.connected = threading.Event()  # It consumes, or did.

    def handle(
        self, name: str, handler: Handler, *, policy: Policy | str | None = None, park: str | None = None
    ) -> None:
        """Give a queue its one handler, before `run`.

        `policy` and `park` replace what the topology says of its retries; a policy may be named, such as
        "fixed 5m", "exponential 10s", "list 10s 1m 5m" or "rocketmq".
        """
        _check_handler(name, handler)
        if self._finished is not None:
            raise DelayctlError(
                f"queue {quoted(name)} gets its handler too late: the consumer runs, and would not consume it",
                fix="call handle before run, or make another consumer for it",
            )
        if self._handlers.get(name, handler) != handler:
            raise DelayctlError(
                f"queue {quoted(name)} has a handler already, and a message goes to one alone",
                fix="call both from one function, or make another consumer for the second",
            )
        retry = next((retry for retry in self._spec.retries if retry.queue == name), None)
        if retry is not None:
            self._plans[name] = Plan(self._retries_of(retry, policy, park), self._parking(park or retry.park))
        elif policy is not None or park is not None:
            raise DelayctlError(
                f"queue {quoted(name)} has no retry in the topology, so nothing would lead back to it",
                fix=f"add it to the file: retry: {{{name}: {{park: {name}.dlq}}}}, and apply it",
            )
        self._handlers[name] = handler

    def watch(self, on_failure: OnFailure) -> None:
        """Have a function told of whatever a handler raises, in the handler's thread, before the message is sent on."""
        self._watchers.append(on_failure)

    def record(self, folder: str | Path) -> None:
        """Have every delivery that is settled noted in a file in this folder, before the broker is told; see `Recorder`."""
        self._recorder = Recorder(folder)

    def measure(self, lateness: Lateness) -> None:
        """Have counted how late messages come, by queue; several consumers may share one `Lateness`."""
        self._lateness = lateness

    def _retries_of(self, retry: RetrySpec, policy: Policy | str | None, park: str | None) -> InLevels | ByBroker:
        if retry.by_broker is None:
            levels = self._topology.levels
            chosen = policy_from(policy, levels) if isinstance(policy, str) else policy or ByList(retry.waits)
            back = Names(self._spec.prefix).retry_key(retry.queue)
            return InLevels(chosen, back, frozenset(level.name for level in levels))
        if policy is not None or park is not None:
            raise DelayctlError(
                f"retries of {quoted(retry.queue)} wait by broker, which knows the topology's waits and parking queue only",
                fix="leave out policy and park, or let them wait in levels: remove by: broker in the file, and apply it",
            )
        return ByBroker(retry.by_broker.most)

    def _parking(self, queue: str) -> Parking:
        """The way to a parking queue; the exit knows those of the topology, the default exchange every queue."""
        is_retried = any(retry.queue == queue for retry in self._spec.retries)
        if any(retry.park == queue for retry in self._spec.retries):
            return Parking(queue, self._topology.exit, Names(self._spec.prefix).park_key(queue), is_retried)
        return Parking(queue, "", queue, is_retried)

    def _refuse_circles(self) -> None:
        """Raise DelayctlError where what is parked would come back to its queue by itself, at full speed."""
        parks = {retry.queue: retry.park for retry in self._spec.retries}
        parks |= {queue: plan.parking.queue for queue, plan in self._plans.items()}
        for queue in self._plans:
            if circle := parking_circle(queue, parks):
                what = f"queue {quoted(queue)} parks in a circle: {' → '.join(map(shorten, circle))}"
                raise DelayctlError(what, fix="park in a queue without a retry, in the file or in handle(park=…)")

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that have a handler."""
        return tuple(self._handlers)

    @property
    def cancelled(self) -> int:
        """How many messages came that were cancelled, and that no handler was given."""
        return self._treatment.cancelled if self._treatment else 0

    def stop(self) -> None:
        """Take no more messages, finish those that were begun, acknowledge, and return from `run`."""
        if not self._is_stopping:
            self._stop_by = time.monotonic() + self._stop_within_s
        self._is_stopping = True
        if (finished := self._finished) is not None:
            finished.ring()

    def run(self) -> None:
        """Consume until stopped. In the main thread SIGTERM and SIGINT stop it, too.

        A consumer runs once: after a `stop`, be it before this, it returns at once and logs that.
        """
        if not self._handlers:
            raise DelayctlError("there is no handler", fix="give one with handle(queue, function)")
        if self._was_stopped():
            return
        self._refuse_circles()
        if self._recorder is not None:
            self._recorder.open()
        finished = self._finished = Finished()
        try:
            with self._signals(), self._retries() as publisher, self._cancellations() as is_cancelled:
                treatment = self._treatment = Treatment(
                    self._handlers,
                    self._plans,
                    publisher,
                    self._clock,
                    watchers=self._watchers,
                    is_cancelled=is_cancelled,
                    measure=self._lateness.note if self._lateness else None,
                    **self._noting(),
                )
                workers = Workers(self._workers, treatment.treat, finished)
                try:
                    self._consume(workers, finished)
                finally:
                    workers.stop(self._stop_by if self._is_stopping else time.monotonic() + self._stop_within_s)
        finally:
            self._finished = None
            finished.close()
            if self._recorder is not None:
                self._recorder.close()

    def _was_stopped(self) -> bool:
        """Say and log it; no error, since a thread that is to be stopped may not have come to `run` yet."""
        if self._is_stopping:
            _LOG.warning("nothing is consumed, since stop() was called: make another DelayConsumer to consume again")
        return self._is_stopping

    def __enter__(self) -> "DelayConsumer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def _noting(self) -> dict[str, Note]:
        return {} if self._recorder is None else {"note": self._recorder.note}

    @contextmanager
    def _signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, lambda *_: self.stop()) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, action in previous.items():
                signal.signal(number, action or signal.SIG_DFL)

    @contextmanager
    def _retries(self) -> Iterator[DelayPublisher | None]:
        """The publisher of what failed, where anything leads back."""
        if not self._plans:
            yield None
            return
        publisher = DelayPublisher(
            self._brokers,
            topology=self._topology,
            heartbeat_s=self._heartbeat_s,
            name=f"{self._name} retries",
            clock=self._clock,
        )
        try:
            yield publisher
        finally:
            try:
                publisher.close(timeout=max(1.0, self._stop_by - time.monotonic()))
            except NotConfirmed as error:
                _LOG.warning("some retries are not confirmed; their messages were not acknowledged: %s", error.what)

    @contextmanager
    def _cancellations(self) -> Iterator[Callable[[Message], bool]]:
        """What tells the cancelled messages from others: a consumer beside this one reads which they are."""
        if not self._spec.cancel or not self._spec.has_delays:
            yield lambda _: False
            return
        following, stream = Following(self._clock), Names(self._spec.prefix).cancellations()
        plain = replace(self._spec, cancel=False, retries=())
        name = f"{self._name} cancellations"
        reader = DelayConsumer(
            self._brokers, topology=plain, workers=1, heartbeat_s=self._heartbeat_s, name=name, clock=self._clock
        )
        reader.handle(stream, following.note)
        reader._offsets[stream] = {STREAM_OFFSET: "first"}
        reader._is_strict = False  # Nobody would hear it, and nobody start it again.
        thread = following.start(reader)
        try:
            yield following.is_cancelled
        finally:
            reader.stop()
            thread.join(self._stop_within_s)

    def _consume(self, workers: Workers, finished: Finished) -> None:
        pause, is_strict = _FIRST_PAUSE_S, self._is_strict
        while not self._is_stopping:
            try:
                link, is_complete = self._connect(workers.link, finished, is_strict=is_strict)
            except DelayctlError as error:
                if is_strict:
                    raise
                _LOG.warning("no connection yet: %s", error.what)
            else:
                is_strict, since = False, time.monotonic()
                self.connected.set()
                self._serve(link, workers, until=None if is_complete else since + _LOOK_AGAIN_AFTER_S)
                workers.renew()
                finished.hush()
                if self._needs_no_pause(since):
                    pause = _FIRST_PAUSE_S
                    continue
            finished.rest(pause * random.uniform(0.5, 1))  # noqa: S311 (spreads clients, keeps no secret)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def _needs_no_pause(self, since: float) -> bool:
        return self._is_stopping or time.monotonic() - since > _SETTLED_AFTER_S

    def _serve(self, link: Link, workers: Workers, *, until: float | None) -> None:
        gone_by: float | None = None

        def is_over() -> bool:
            nonlocal gone_by
            if self._is_stopping:
                workers.wind_down()
                self._check_time(link, self._stop_by, "after the stop")
                return True
            if link.gone:
                workers.gone = frozenset(link.gone)
                gone_by = gone_by or time.monotonic() + self._stop_within_s
                self._check_time(link, gone_by, "after a queue was gone")
                return True
            return until is not None and time.monotonic() > until

        try:
            link.serve(workers.hand_out, is_over)
        except _Unfinished as error:
            _LOG.warning("%s", error)
            link.abort()
        except _LOST as error:
            _LOG.warning("the connection was lost: %s", error)
            link.abort()
        except BaseException:
            link.abort()
            raise
        else:
            link.close()

    def _check_time(self, link: Link, by: float, after: str) -> None:
        if link.in_hand and time.monotonic() > by:
            left = f"{plural(link.in_hand, 'message')} in hand not finished within {self._stop_within_s:g} s {after}"
            raise _Unfinished(f"{left} (stop_within_s): not acknowledged, so that the broker gives them again")

    def _connect(self, number: int, finished: Finished, *, is_strict: bool) -> tuple[Link, bool]:
        """Connect to any of the brokers; says whether all queues are there, which a strict one insists on."""
        trouble: Exception = DelayctlError("there is no broker", fix="give a URL")
        for access in random.sample(self._brokers, len(self._brokers)):
            try:
                return self._connect_to(access, number, finished, is_strict=is_strict)
            except DelayctlError as error:
                trouble = error
            except _LOST as error:
                trouble = Unreachable(f"the connection broke while it was opened: {error}", fix="see the broker's log")
        raise trouble

    def _connect_to(self, access: Access, number: int, finished: Finished, *, is_strict: bool) -> tuple[Link, bool]:
        connection = Connection(access, name=self._name, heartbeat_s=self._heartbeat_s)
        try:
            connection.open_channel(confirms=False)
            parks = {plan.parking.queue for plan in self._plans.values()}
            missing = [name for name in (*self._handlers, *parks) if not self._is_there(connection, name)]
            present = [name for name in self._handlers if name not in missing]
            if missing and (is_strict or not present):
                raise Refused(
                    f"the queue {quoted(missing[0])} is not on the broker",
                    fix="declare it: delayctl apply topology.yaml",
                )
            connection.prefetch(self._prefetch)
            for name in present:
                self._ask_for(connection, name, access.credentials.username)
        except BaseException:
            connection.abort()
            raise
        link = Link(
            number,
            connection,
            present,
            prefetch=self._prefetch,
            finished=finished,
            clock=self._clock,
            recorder=self._recorder,
        )
        return link, not missing

    def _ask_for(self, connection: Connection, name: str, user: str) -> None:
        try:
            connection.consume(name, name, self._offsets.get(name))
        except ClosedByBroker as closed:
            raise refusal(closed.code, closed.text, queue=name, user=user) from closed

    def _is_there(self, connection: Connection, name: str) -> bool:
        try:
            connection.check_queue(name)
        except Refused as error:
            if error.code != 404:
                raise
            _LOG.error("the queue %s is not on the broker", name)
            return False
        return True


def _check_handler(queue: str, handler: object) -> None:
    """Refuse what could not be called with a message and be done when it returns."""
    call = getattr(handler, "__call__", None)  # noqa: B004 (looked at: an object's call may be a coroutine)
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call):
        raise BadOption(
            f"the handler of {quoted(queue)} is an async function: workers are threads, and nobody would await it",
            fix="give a function that runs it to its end: lambda message: asyncio.run(handler(message)), "
            "or in a loop of yours: asyncio.run_coroutine_threadsafe(handler(message), loop).result()",
        )
    if call is None:
        raise BadOption(
            f"the handler of {quoted(queue)} can't be called: it is of type {type(handler).__name__}",
            fix="give a function that takes a message",
        )
