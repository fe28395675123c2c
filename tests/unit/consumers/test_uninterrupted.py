"""What must not be left half-done is done before Ctrl-C is heard."""

import signal
import threading
from collections.abc import Iterator

import pytest
from delayctl.consumers.uninterrupted import uninterrupted


def interrupted(done: list[str], error: Exception | None = None) -> None:
    """Ctrl-C comes in the middle of it."""
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")
        if error is not None:
            raise error


def test_ctrl_c_is_heard_at_the_end() -> None:
    """And as ever afterwards."""
    done: list[str] = []
    before = signal.getsignal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupted(done)

    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) == before


@pytest.fixture
def own_handler() -> Iterator[list[int]]:
    """What a program hears that deals with Ctrl-C in its own way."""
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    yield heard
    signal.signal(signal.SIGINT, before)


def test_who_hears_ctrl_c_otherwise_hears_it_so(own_handler: list[int]) -> None:
    """Once, and at the end."""
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
        assert own_handler == []

    assert own_handler == [signal.SIGINT]


def test_who_hears_no_ctrl_c_is_spared_it(own_handler: list[int]) -> None:
    """As where a shell has put it into the background."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    done: list[str] = []

    interrupted(done)

    assert (done, own_handler) == (["all of it"], [])


def test_what_goes_wrong_is_not_hidden() -> None:
    """Ctrl-C or not."""
    with pytest.raises(ValueError, match="no"):
        interrupted([], ValueError("no"))


def test_other_threads_never_get_one() -> None:
    """There it changes nothing, and may be used all the same."""
    done: list[str] = []

    def work() -> None:
        with uninterrupted():
            done.append("all of it")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert done == ["all of it"]
