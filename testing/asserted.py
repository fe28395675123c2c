"""What tests assert inside handlers: a consumer takes it for a failure like any other, the test must not."""

import threading

_OUTCOMES = "_pytest.outcomes"  # Where pytest.fail, pytest.skip and pytest.exit come from; it need not be installed.


class Asserted:
    """The first assertion that failed in a handler and was not raised in the test yet; used by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: BaseException | None = None

    def note(self, error: BaseException) -> None:
        """Keep what a handler raised, if it was meant for the test."""
        if _is_for_the_test(error):
            with self._lock:
                self._first = self._first or error

    def check(self) -> None:
        """Raise what was kept, once."""
        with self._lock:
            first, self._first = self._first, None
        if first is not None:
            raise first


def _is_for_the_test(error: BaseException) -> bool:
    return isinstance(error, AssertionError) or any(base.__module__ == _OUTCOMES for base in type(error).__mro__)
