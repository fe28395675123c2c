"""Looks into one queue after the other, and keeps what was done when something comes between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from delayctl.cli import exit_codes
from delayctl.cli.moved_views import code_of
from delayctl.cli.moving import Result
from delayctl.topology.errors import DelayctlError


@dataclass
class Tour:
    """One queue after the other, until one of them ends it."""

    limit: int | None
    results: list[Result] = field(default_factory=list)
    unvisited: list[str] = field(default_factory=list)  # What was not looked into although it was meant.
    trouble: DelayctlError | None = None
    is_stopped: bool = False  # Between two queues.

    @property
    def moved(self) -> int:
        """How many of the limit are used up."""
        return sum(result.moved.sent.total() + result.moved.failed.total() for result in self.results)

    def make(self, queues: Sequence[str], visit: Callable[[str], Result], is_over: Callable[[], bool]) -> None:
        """Look into each; whatever comes after the first, what was done before is kept."""
        self.unvisited = list(queues)
        try:
            while self.unvisited and not is_over() and not self._has_ended:
                self.results.append(visit(self.unvisited[0]))
                self.unvisited.pop(0)
                self.trouble = self.results[-1].trouble
        except (DelayctlError, KeyboardInterrupt) as error:
            if not self.results:
                raise
            self.is_stopped = True
            self.trouble = error if isinstance(error, DelayctlError) else None
        if is_over():
            self.unvisited.clear()

    @property
    def _has_ended(self) -> bool:
        is_stopped = any(result.moved.is_stopped for result in self.results)
        return is_stopped or (self.limit is not None and self.moved >= self.limit)

    @property
    def code(self) -> int:
        """0 when all that was meant was moved, 3 when some of it was, 1 when none was."""
        if not self.is_stopped and all(code_of(result.moved) == exit_codes.DONE for result in self.results):
            return exit_codes.DONE
        return exit_codes.PARTLY_APPLIED if any(result.moved.is_any for result in self.results) else exit_codes.FAILED
