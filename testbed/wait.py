"""Waiting for a condition, never for a guessed time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], deadline: float, *, what: str = "the condition", every: float = 0.1) -> T:
    """Return the first true value of `condition`, or raise TimeoutError after `deadline` seconds."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise TimeoutError(f"{what} did not come true within {deadline:g} s")
        time.sleep(every)
