"""The recorder: whole lines from many threads, in a file of its own, and no silence when it can't write."""

import json
import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest
from delayctl.consumers.message import Message
from delayctl.consumers.recorder import Recorder, RecordNotWritten, record_line
from delayctl.publishers.contract import ATTEMPT, DUE, EXPEDITED, LEVEL, ORIGIN
from delayctl.publishers.frames import CONTENT_HEAD, Properties, encode_properties

FACTS: dict[str, Any] = {
    "queue": "orders.queue",
    "routing_key": "order.created",
    "received_at": 1_763_312_400_123,
    "due": 1_763_312_400_000,
    "level": "1m",
    "attempt": 0,
    "redelivered": False,
}


def message(message_id: str | None, headers: dict[str, Any], *, redelivered: bool = False) -> Message:
    """A message as it came from the exit."""
    header = CONTENT_HEAD.pack(60, 0, 0, 0)[:12] + encode_properties(Properties(headers=headers, message_id=message_id))
    return Message(b"4711", "orders.queue", redelivered, "delay.exchange", "order.created", header)


def lines(folder: Path) -> list[Any]:
    """All that was recorded."""
    return [json.loads(line) for file in sorted(folder.iterdir()) for line in file.read_text().splitlines()]


def test_a_delivery(tmp_path: Path) -> None:
    """Who, where, when, and what for."""
    with Recorder(tmp_path) as recorder:
        recorder.note(message("m-1", {DUE: FACTS["due"], LEVEL: "1m"}), FACTS["received_at"])

    assert lines(tmp_path) == [{"message_id": "m-1", **FACTS}]


def test_an_expedited_message(tmp_path: Path) -> None:
    """It says so: an audit does not call it early."""
    with Recorder(tmp_path) as recorder:
        recorder.note(message("m-1", {DUE: FACTS["due"], LEVEL: "1m", EXPEDITED: 5}), FACTS["received_at"])

    assert lines(tmp_path) == [{"message_id": "m-1", **FACTS, "expedited": True}]


def test_a_retry(tmp_path: Path) -> None:
    """It has the key that it first came with, and its attempt."""
    origin = {"exchange": "orders", "key": "order.paid"}
    with Recorder(tmp_path) as recorder:
        recorder.note(message("m-1", {ATTEMPT: 2, ORIGIN: origin}, redelivered=True), 5)

    found = {"routing_key": "order.paid", "received_at": 5, "due": None, "level": None, "attempt": 2}
    assert lines(tmp_path) == [{"message_id": "m-1", **FACTS, **found, "redelivered": True}]


@pytest.mark.parametrize("message_id", [None, "", 'quote " \\ and\nline', "grüße", "\udcff"])
def test_odd_ids(message_id: str | None) -> None:
    """A line stays one line, and says what it was told."""
    line = record_line(message_id, **FACTS)

    assert json.loads(line) == {"message_id": message_id, **FACTS}
    assert line.isascii()
    assert "\n" not in line


@pytest.mark.parametrize("header", ["soon", True, 2**70, 1.5, None, {"a": 1}])
def test_headers_of_strangers(header: object) -> None:
    """A due time that is no number and a level that is no text are left out."""
    found = json.loads(record_line("m-1", **{**FACTS, "due": header, "level": header}))

    assert found["due"] is None
    assert found["level"] == (header if isinstance(header, str) else None)


def test_nothing_is_written_before_it_is_flushed(tmp_path: Path) -> None:
    """And all of it afterwards, without the file being closed."""
    recorder = Recorder(tmp_path)
    recorder.open()
    recorder.note_line("1")
    recorder.note_line("2")
    before = lines(tmp_path)

    recorder.flush()

    assert (before, lines(tmp_path)) == ([], [1, 2])
    recorder.close()


def test_many_threads(tmp_path: Path) -> None:
    """While one flushes, others note: every line is there once and whole, and those of a thread are in order."""
    recorder, over = Recorder(tmp_path), threading.Event()

    def note(who: int) -> None:
        for n in range(5_000):
            recorder.note_line(f"[{who},{n}]")

    def flush() -> None:
        while not over.is_set():
            recorder.flush()

    threads = [threading.Thread(target=note, args=(who,)) for who in range(4)]
    flusher = threading.Thread(target=flush)
    for thread in (flusher, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    flusher.join()
    recorder.close()

    found = lines(tmp_path)
    assert len(found) == 20_000
    assert sorted(found) == [[who, n] for who in range(4) for n in range(5_000)]
    assert all([n for each, n in found if each == who] == [*range(5_000)] for who in range(4))


def test_every_recorder_has_its_file(tmp_path: Path) -> None:
    """Named by host and process; two of one process do not meet."""
    with Recorder(tmp_path / "new" / "folder") as one, Recorder(tmp_path / "new" / "folder") as other:
        one.note_line("1")
        other.note_line("2")

    names = [file.name for file in (tmp_path / "new" / "folder").iterdir()]
    assert len(names) == 2
    assert all(f"{os.uname().nodename}-{os.getpid()}-" in name and name.endswith(".ndjson") for name in names)


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    """It is found out before the first message is taken."""
    (tmp_path / "file").write_text("")

    with pytest.raises(RecordNotWritten) as caught:
        Recorder(tmp_path / "file" / "records").open()

    assert str(caught.value).startswith("Error: the record can't be written: Not a directory\n  at ")
    assert "fix: make room or name another folder" in str(caught.value)


def test_a_full_disk(tmp_path: Path) -> None:
    """The lines that did not fit are an error, and what comes afterwards begins in a file of its own."""
    recorder, before = Recorder(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    recorder.note_line("1")
    recorder.flush()
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        recorder.note_line('"too long to fit"')
        with pytest.raises(RecordNotWritten, match="File too large"):
            recorder.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    recorder.note_line("2")
    recorder.close()

    assert sorted(file.read_text() for file in tmp_path.iterdir()) == ['1\n"to', "2\n"]
