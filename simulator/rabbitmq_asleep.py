"""What failed and waits in its quorum queue before it is ready again (delayed retry)."""

from collections.abc import Callable

from delayctl.simulator.clock import Timer, VirtualClock
from delayctl.simulator.rabbitmq_message import Message
from delayctl.topology.model import Settings

MODELLED = "failed"  # What waits: what was rejected, or held by a consumer that died; not what was given back unhurt.


class Asleep:
    """Messages by the time at which each is ready again; `wake` is called with it then."""

    def __init__(self, clock: VirtualClock, wake: Callable[[Message], None]) -> None:
        self._clock, self._wake = clock, wake
        self._step = self._longest = 0
        self._timers: dict[int, Timer] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._timers)

    def configure(self, settings: Settings) -> None:
        """Take over how long messages wait from now on."""
        is_on = settings.retry_type == MODELLED and settings.retry_min is not None
        self._step = settings.retry_min.ms if is_on and settings.retry_min is not None else 0
        self._longest = settings.retry_max.ms if settings.retry_max is not None else 0

    def takes(self, message: Message) -> bool:
        """Let a message wait a step for each time that it failed, up to the longest; says whether it does."""
        wait = self._step * message.failures
        if not wait:
            return False
        self._number += 1
        number = self._number
        self._timers[number] = self._clock.after(
            min(wait, self._longest) if self._longest else wait, lambda: self._rise(number, message)
        )
        return True

    def clear(self) -> int:
        """Throw away what waits; says how many there were."""
        count = len(self._timers)
        for timer in self._timers.values():
            self._clock.cancel(timer)
        self._timers.clear()
        return count

    def _rise(self, number: int, message: Message) -> None:
        del self._timers[number]
        self._wake(message)
