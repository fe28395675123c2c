"""The future of a message: what `publish` answers with."""

import threading
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, RUNNING
from typing import Any

from delayctl.publishers.errors import NotPublished

_FOR_WAITING: Mapping[str, Callable[[], object]] = {
    "_condition": threading.Condition,
    "_waiters": list,
    "_done_callbacks": list,
}

_MAKING = threading.Lock()


class Delivery(Future[str]):
    """Resolves to the message id once the broker has confirmed; can be waited for, and awaited.

    It can't be cancelled: the message is on its way already.
    """

    # Most futures are never waited for, and a lock for each would cost more than the rest of a publish. So an instance
    # begins with nothing, and what waiting needs is made by the first who waits.
    _state = RUNNING
    _result: str | None = None
    _exception: BaseException | None = None
    is_watched = False  # Somebody asked what became of the message, and needs no other to say it.

    def __init__(self) -> None:
        """Begin with nothing."""

    def __getattr__(self, name: str) -> Any:
        """Make what waiting needs; two who come at once get the same."""
        make = _FOR_WAITING.get(name)
        if make is None:
            raise AttributeError(name)
        with _MAKING:
            return self.__dict__.setdefault(name, make())

    def resolve(self, message_id: str, error: NotPublished | None = None) -> None:
        """Tell the outcome to whoever waits, now or later."""
        with _MAKING:  # Whoever begins to wait right now finds the outcome, or we find that somebody waits.
            if "_condition" not in self.__dict__:
                self._result, self._exception = (message_id, None) if error is None else (None, error)
                self._state = FINISHED
                return
        if error is None:
            self.set_result(message_id)
        else:
            self.set_exception(error)

    def result(self, timeout: float | None = None) -> str:
        """Wait for the message id; raises NotPublished where it was not confirmed."""
        self.is_watched = True
        if self._state == FINISHED and self._result is not None:  # Most are asked when all is over: no lock is needed.
            return self._result
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the reason why it was not confirmed; None where it was."""
        self.is_watched = True
        if self._state == FINISHED:
            return self._exception
        return super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[str]], object]) -> None:
        """Call a function once it is answered, from the publisher's own thread: it must not wait."""
        self.is_watched = True
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, str]:
        """Wait within asyncio."""
        import asyncio  # noqa: PLC0415 (services without it need not load it)

        return asyncio.wrap_future(self).__await__()
