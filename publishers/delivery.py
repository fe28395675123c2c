"""The future of a message: what `publish` answers with."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures._base import FINISHED, LOGGER, RUNNING
from contextlib import contextmanager
from typing import Any

from delayctl.publishers.errors import NotPublished
from delayctl.topology.errors import DelayctlError

_FOR_WAITING: Mapping[str, Callable[[], object]] = {
    "_condition": threading.Condition,
    "_waiters": list,
    "_done_callbacks": list,
    "_asking": list,  # An entry for each who waits: added and taken away in one step, which needs no lock.
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
    _is_told = False  # Somebody knows what became of the message.
    has_callback = False  # It is told to a function, whoever asks beside it.

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
        try:
            if error is None:
                self.set_result(message_id)
            else:
                self.set_exception(error)
        except BaseException:  # Of a callback: others wait for this thread, whatever one of them wants to end.
            LOGGER.exception("the callback of a message failed")

    def once_told(self, note: Callable[[], object]) -> None:
        """Have it noted when somebody is told what became of the message, or will be by a function."""
        self._once_told = note

    @property
    def is_watched(self) -> bool:
        """Whether somebody was told what became of the message, or will be, and needs no other to say it."""
        return self._is_told or self.has_callback or bool(self.__dict__.get("_asking"))

    def result(self, timeout: float | None = None) -> str:
        """Wait for the message id; raises NotPublished where it was not confirmed."""
        if self._state == FINISHED and self._result is not None:  # Most are asked when all is over: no lock is needed.
            return self._result
        self.exception(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the reason why it was not confirmed; None where it was."""
        if self._state != FINISHED:
            self._wait(timeout)
        self._tell()
        return self._exception

    def _wait(self, timeout: float | None) -> None:
        """Wait for the outcome; whoever waits in vain knows nothing, and speaks for no other."""
        thread = threading.current_thread()
        if timeout != 0 and isinstance(thread, Teller) and thread.is_to_tell(self):
            raise DelayctlError(
                "the callback of a message can't wait for others: it is they who would have to call it",
                fix="wait in another thread, or give that message a callback too",
            )
        try:
            with self._counted():
                super().exception(timeout)
                self._tell()
        except TimeoutError:
            if self._state != FINISHED:  # Else it came at the last moment, and a flush may have left it to us.
                raise

    def _tell(self) -> None:
        self._is_told = True
        self._tell_once()

    def _tell_once(self) -> None:
        if note := self.__dict__.pop("_once_told", None):
            note()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Be one of those who wait."""
        self._asking.append(True)
        try:
            yield
        finally:
            self._asking.pop()

    def add_done_callback(self, fn: Callable[[Future[str]], object]) -> None:
        """Call a function once it is answered, from the publisher's own thread: it must not wait."""
        self.has_callback = True
        self._tell_once()
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, str]:
        """Wait within asyncio."""
        import asyncio  # noqa: PLC0415 (services without it need not load it)

        had_callback = self.has_callback
        waiting = asyncio.wrap_future(self)
        self.has_callback = had_callback
        with self._counted():
            try:
                return (yield from waiting)
            except NotPublished:
                self._tell()
                raise


class Teller(threading.Thread):
    """A thread that tells deliveries their outcome, and calls back whoever asked for that."""

    def __init__(self, run: Callable[[], object], is_to_tell: Callable[[Delivery], bool], *, name: str) -> None:
        """`is_to_tell` says of a delivery whether it waits for this thread."""
        super().__init__(target=run, name=name, daemon=True)
        self.is_to_tell = is_to_tell
