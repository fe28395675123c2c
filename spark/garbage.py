"""Fewer passes of Python's garbage collector while many messages are on their way."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000  # A block of messages is fewer objects than that.


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Have the collector look for cycles rarely: messages form none, and to look at all of them takes a third of the time."""
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
