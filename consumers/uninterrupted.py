"""Puts Ctrl-C off while something is done that must not be left half-done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a Ctrl-C that comes meanwhile be heard at the end, by whoever hears it; only the main thread ever gets one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if heard:
        signal.raise_signal(signal.SIGINT)
