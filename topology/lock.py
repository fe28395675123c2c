"""One run at a time: an exclusive queue on the broker, which goes by itself when its owner dies."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from delayctl.topology.access import Access
from delayctl.topology.amqp import AmqpSession
from delayctl.topology.errors import BrokerError, Locked, Refused
from delayctl.topology.names import Names

RESOURCE_LOCKED = 405
PRECONDITION_FAILED = 406  # There is no room for one queue more, or somebody made one of this name.
_RETRY_S = 0.2


@contextmanager
def hold_lock(
    access: Access, prefix: str, *, wait_s: float, on_wait: Callable[[], None]
) -> Iterator[Callable[[], None]]:
    """Hold the lock of a topology; yields a function that keeps it, and raises Unreachable once it is lost."""
    with AmqpSession(access) as session:
        _acquire(session, Names(prefix).lock(), wait_s, on_wait)
        try:
            yield session.keep_alive
        finally:
            # Closing the connection would remove it too, but only some time after we are gone.
            with suppress(BrokerError):
                session.delete_queue(Names(prefix).lock(), guarded=False)


def _acquire(session: AmqpSession, name: str, wait_s: float, on_wait: Callable[[], None]) -> None:
    deadline, told = time.monotonic() + wait_s, False
    while True:
        try:
            session.hold_exclusive(name)
            return
        except Refused as error:
            if error.code == PRECONDITION_FAILED:
                what = (
                    f"the lock of this topology can't be taken, it is a queue as long as delayctl works: {error.what}"
                )
                raise Refused(what, code=error.code, fix=error.fix) from error
            if error.code != RESOURCE_LOCKED:
                raise
            if time.monotonic() >= deadline:
                fix = "wait until it is done, or raise --lock-timeout; a lock of a run that died goes by itself"
                raise Locked("another delayctl is changing this topology right now", fix=fix) from error
        if not told:
            on_wait()
            told = True
        time.sleep(_RETRY_S)
