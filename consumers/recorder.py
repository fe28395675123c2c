"""What was handled, one line of JSON each, on disk before the broker is told: the other half of `delayctl audit`.

A line is written for every delivery that is settled: done, or sent on as a retry or to the parking queue. So a message
that took three tries has three lines, with attempts 0, 1 and 2; one that was given back unhandled has none.
"""

import json
import os
import secrets
import socket
from collections import deque
from pathlib import Path
from types import TracebackType

from delayctl.consumers.message import Message
from delayctl.publishers.contract import DUE, EXPEDITED, LEVEL
from delayctl.topology.errors import DelayctlError

_INT64 = 2**63
_NULL, _CANCELLED, _EXPEDITED = "null", ',"cancelled":true', ',"expedited":true'
_text = json.encoder.encode_basestring_ascii  # A whole encoder per line would take longer than all the rest.


class RecordNotWritten(DelayctlError):
    """The record can't be written; what was not recorded was not acknowledged."""


class Recorder:
    """Gathers lines from any thread; one thread flushes them, whole, into a file of this process in `folder`.

    >>> with Recorder("records/") as recorder:
    ...     recorder.note(message, received_ms)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._lines: deque[str] = deque()
        self._file: int | None = None

    def note(self, message: Message, received_ms: int, *, is_cancelled: bool = False) -> None:
        """Note that a message was handled, which came in at this moment (milliseconds since 1970)."""
        headers = message.headers
        self._lines.append(
            record_line(
                message.message_id,
                queue=message.queue,
                routing_key=message.key,
                received_at=received_ms,
                due=headers.get(DUE),
                level=headers.get(LEVEL),
                attempt=message.attempt,
                redelivered=message.redelivered,
                cancelled=is_cancelled,
                expedited=EXPEDITED in headers,
            )
        )

    def note_line(self, line: str) -> None:
        """Note a line of `record_line`."""
        self._lines.append(line)

    def open(self) -> None:
        """Make the folder and the file, unless they are there; a place that can't be written is found out now."""
        try:
            self._opened()
        except OSError as error:
            raise self._not_written(error) from error

    def flush(self) -> None:
        """Write what was noted; when this returns it survives the end of the process, not that of the machine.

        Raises RecordNotWritten where it can't; what was noted is then forgotten, as if it had never been handled.
        """
        take, count = self._lines.popleft, len(self._lines)
        if not count:
            return
        data = "\n".join([take() for _ in range(count)]).encode() + b"\n"
        try:
            _write_all(self._opened(), data)
        except OSError as error:
            self._abandon()
            raise self._not_written(error) from error

    def close(self) -> None:
        """Write what is left, and close the file."""
        self.flush()
        self._abandon()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def _opened(self) -> int:
        if self._file is None:
            self._file = self._new_file()
        return self._file

    def _new_file(self) -> int:
        """A file of this process alone: containers often share both the host's name and the process number."""
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}.ndjson"
        return os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _not_written(self, error: OSError) -> RecordNotWritten:
        return RecordNotWritten(
            f"the record can't be written: {error.strerror}",
            where=str(self.folder),
            fix="make room or name another folder; what was not recorded was not acknowledged, and comes again",
        )

    def _abandon(self) -> None:
        """Leave the file: after a failure its last line may be half a line, and nothing is put behind that."""
        if self._file is not None:
            os.close(self._file)
        self._file = None


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def record_line(
    message_id: str | None,
    *,
    queue: str,
    routing_key: str,
    received_at: int,
    due: object,
    level: object,
    attempt: int,
    redelivered: bool,
    cancelled: bool = False,
    expedited: bool = False,
) -> str:
    """A line of a record; due time and level are headers, which anybody may have written.

    `cancelled`: nobody handled it. `expedited`: it was taken out of its delay on purpose.
    """
    return (
        f'{{"message_id":{_NULL if message_id is None else _text(message_id)},"queue":{_text(queue)},'
        f'"routing_key":{_text(routing_key)},"received_at":{received_at},'
        f'"due":{due if type(due) is int and -_INT64 <= due < _INT64 else _NULL},'
        f'"level":{_text(level) if isinstance(level, str) else _NULL},"attempt":{attempt},'
        f'"redelivered":{"true" if redelivered else "false"}'
        f"{_CANCELLED if cancelled else ''}{_EXPEDITED if expedited else ''}}}"
    )
