"""Publishes a file line by line: memory stays flat, a bad line does not stop the rest, and every message is accounted for."""

import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, Any

import click
from delayctl.cli.message_lines import Outgoing, read_line
from delayctl.cli.progress import Progress
from delayctl.publishers.delivery import Delivery
from delayctl.publishers.errors import ConnectionLost, NotConfirmed, NotPublished, PublisherClosed
from delayctl.topology.errors import DelayctlError, Location, Problem
from delayctl.topology.wording import plural

Send = Callable[[Outgoing], Delivery]
Close = Callable[[float | None], None]
_LONGEST_LINE = 64 * 1024 * 1024
_LAST_ANSWERS_S = 5.0
_MOST_PROBLEMS = 1_000  # In the JSON answer; on stderr stand all of them.
_MOST_SHOWN = 20


@dataclass(slots=True)
class LinesResult:
    """The account: published = confirmed + refused + not confirmed."""

    published: int = 0
    refused: int = 0
    bad_lines: int = 0
    seconds: float = 0.0
    stopped: str | None = None  # Why the rest of the file was not read.
    last_line: int = 0
    unconfirmed: dict[int, str] = field(default_factory=dict)  # Line and message id.
    problems: list[Problem] = field(default_factory=list)
    notes: tuple[str, ...] = ()  # What the file says of messages that were published.

    @property
    def confirmed(self) -> int:
        """How many the broker has safe."""
        return self.published - self.refused - len(self.unconfirmed)

    @property
    def is_complete(self) -> bool:
        """Whether every line is safe."""
        return not (self.refused or self.bad_lines or self.stopped or self.unconfirmed)


def publish_lines(
    lines: IO[bytes],
    name: str,
    defaults: Mapping[str, Any],
    send: Send,
    close: Close,
) -> LinesResult:
    """Publish every line, report the bad ones on stderr, wait for the answers, close the publisher, and count."""
    run = _Run(name)
    started = time.perf_counter()
    with Progress(lines) as progress:
        try:
            run.publish_all(lines, defaults, send, progress)
            _close(close, None)
        except KeyboardInterrupt:
            run.result.stopped = "Ctrl-C"
            progress.clear()
            click.echo("Stopping: waiting for the broker's last answers …", err=True)
            _close(close, _LAST_ANSWERS_S)
        run.report(progress)
    return replace(run.result, seconds=time.perf_counter() - started)


def _close(close: Close, timeout_s: float | None) -> None:
    """Wait for the last answers, but not after another Ctrl-C; what is unconfirmed is told afterwards."""
    with suppress(NotConfirmed):
        try:
            close(timeout_s)
        except KeyboardInterrupt:
            if timeout_s is None:
                raise
            close(0)


class _Run:
    """What is under way. Answers come in from the publisher's thread; dicts and deques take that."""

    def __init__(self, name: str) -> None:
        self.result = LinesResult()
        self._name = name
        self._waiting = self.result.unconfirmed
        self._failed: deque[tuple[int, DelayctlError]] = deque()
        self._lost: str | None = None

    def publish_all(self, lines: IO[bytes], defaults: Mapping[str, Any], send: Send, progress: Progress) -> None:
        """Hand over line after line."""
        try:
            for number, line in _numbered(lines):
                self._publish(number, line, defaults, send)
                progress.show(self.result.confirmed)
                self.report(progress)
                if self.result.stopped:
                    return
        except OSError as error:
            self.result.stopped = f"the file can't be read on: {error.strerror}"

    def _publish(self, number: int, line: bytes, defaults: Mapping[str, Any], send: Send) -> None:
        """Hand one line over, or note what is wrong with it."""
        self.result.last_line = number
        try:
            message = _understood(line, defaults)
            delivery = send(message)
        except DelayctlError as error:
            self._bad(number, error)
            return
        except ValueError as error:  # Half a character, for one: nothing in one line stops the others.
            self._bad(number, DelayctlError(f"the message can't be sent: {error}", fix="correct the line"))
            return
        self.result.published += 1
        self._waiting[number] = message.message_id or ""
        delivery.add_done_callback(partial(self._answered, number))

    def _bad(self, number: int, error: DelayctlError) -> None:
        self.result.bad_lines += 1
        self._failed.append((number, error))

    def _answered(self, number: int, delivery: Any) -> None:
        error = delivery.exception()
        if isinstance(error, ConnectionLost):
            self._lost = error.what
        if isinstance(error, ConnectionLost | PublisherClosed):
            return  # Nothing is known of it: it stays among the unconfirmed.
        if error is not None:
            self._failed.append((number, error))
        self._waiting.pop(number, None)

    def report(self, progress: Progress) -> None:
        """Say what failed since the last time."""
        while self._failed:
            number, error = self._failed.popleft()
            problem = Problem(error.what, Location(self._name, number), error.fix or "publish it again")
            progress.clear()
            click.echo(str(problem), err=True)
            if len(self.result.problems) < _MOST_PROBLEMS:
                self.result.problems.append(problem)
            if isinstance(error, NotPublished):
                self.result.refused += 1
        if self._lost:  # It is no use to try the other lines, a minute each.
            self.result.stopped = self._lost


def _understood(line: bytes, defaults: Mapping[str, Any]) -> Outgoing:
    if len(line) > _LONGEST_LINE:
        raise DelayctlError(f"the line is longer than {_LONGEST_LINE:,} bytes", fix="send less in one message")
    message = read_line(line, defaults)
    return message if message.message_id else replace(message, message_id=uuid.uuid4().hex)


def _numbered(lines: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Every line that is not blank, with its number; of one that is too long only the beginning."""
    number = 0
    while line := lines.readline(_LONGEST_LINE + 1):
        number += 1
        rest = line
        while len(rest) > _LONGEST_LINE and not rest.endswith(b"\n"):
            rest = lines.readline(_LONGEST_LINE + 1)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def result_text(result: LinesResult) -> str:
    """The account as people read it."""
    rate = f" ({result.confirmed / result.seconds:,.0f}/s)" if result.seconds else ""
    lines = [f"{plural(result.confirmed, 'message')} confirmed in {result.seconds:.1f} s{rate}."]
    if result.bad_lines:
        lines.append(f"{plural(result.bad_lines, 'line')} could not be used.")
    if result.refused:
        lines.append(f"{plural(result.refused, 'message')} not taken by the broker.")
    if result.unconfirmed:
        shown = [f"line {number} (message {id_})" for number, id_ in list(result.unconfirmed.items())[:_MOST_SHOWN]]
        more = len(result.unconfirmed) - len(shown)
        lines.append(
            f"{plural(len(result.unconfirmed), 'message')} not confirmed, arrived or not: "
            f"{', '.join(shown)}{f' and {more:,} more (--output json names all)' if more else ''}."
        )
    if result.stopped:
        lines.append(f"Stopped after line {result.last_line:,}: {result.stopped}.")
    return "\n".join(lines)


def result_json(result: LinesResult) -> dict[str, Any]:
    """The account as programs read it."""
    return {
        "published": result.published,
        "confirmed": result.confirmed,
        "refused": result.refused,
        "bad_lines": result.bad_lines,
        "not_confirmed": [{"line": number, "message_id": id_} for number, id_ in result.unconfirmed.items()],
        "stopped": result.stopped,
        "last_line": result.last_line,
        "seconds": round(result.seconds, 3),
        "problems": [
            {"line": problem.location.line, "message": problem.message, "fix": problem.fix}
            for problem in result.problems
        ],
        "notes": list(result.notes),
        "problems_left_out": result.bad_lines + result.refused - len(result.problems),
    }
