"""What a test does when the broker that it needs is not to be had: skip on a laptop, fail on CI."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NoReturn, TypeVar

import pytest

from testbed.broker import BrokerUnavailable

T = TypeVar("T")


@contextmanager
def needed(way: AbstractContextManager[T]) -> Iterator[T]:
    """Enter a way to a broker for a test; without one the test is skipped with the reason, or fails where CI is set."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(way)
        except BrokerUnavailable as error:
            give_up(str(error))
        yield found


def give_up(reason: str) -> NoReturn:
    """Skip the running test with this reason; on CI, where a skipped test is an untested promise, fail it."""
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
