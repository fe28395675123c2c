"""The bell for the thread that tells the broker."""

import fcntl
import os
import resource
import select
import socket
import time
from collections.abc import Iterator

import pytest
from delayctl.consumers.finished import Finished

HIGH = 1_100  # More than select takes.


@pytest.fixture
def many_files() -> Iterator[None]:
    """A process that may have that many files open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * HIGH), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_it_rests_in_a_process_with_many_open_files() -> None:
    """Until the time is over, or the bell is rung."""
    finished = Finished()
    number = fcntl.fcntl(finished._ear.fileno(), fcntl.F_DUPFD, HIGH)
    finished._ear.close()
    finished._ear = socket.socket(fileno=number)
    started = time.monotonic()

    finished.rest(0.05)
    rested = time.monotonic() - started
    finished.ring()
    finished.rest(60)

    assert 0.04 < rested <= time.monotonic() - started < 30
    finished.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_the_bell_rings_once_when_enough_have_come() -> None:
    """Not for the first of them, and not for those that come after."""
    finished = Finished()
    rung = []

    is_worth_waiting = finished.announce(2)
    for tag in (1, 2, 3):
        finished.put(1, tag, "done")
        rung.append(bool(select.select([finished], [], [], 0)[0]))
    finished.hush()
    has_come = finished.announce(3)
    finished.close()

    assert (is_worth_waiting, rung, has_come) == (True, [False, True, True], False)
    assert [tag for _, tag, _ in finished.take()] == [1, 2, 3]
