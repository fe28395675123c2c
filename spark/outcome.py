"""How a run of a backfill ended."""

from dataclasses import dataclass

from delayctl.spark.account import Account


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run says of itself at its end, and what its ledger says of it."""

    run: int
    account: Account  # Of the tasks that came to an end by themselves.
    in_ledger: int  # How many messages the run has confirmed and written down, whatever became of its tasks.
    reasons: tuple[tuple[str, int], ...]
    is_stopped: bool
    took_ms: int
    errors: tuple[tuple[str, str | None], ...] = ()  # What went wrong, and what to do about it.

    @property
    def state(self) -> str:
        """The whole in a word."""
        return "failed" if self.errors else "stopped" if self.is_stopped else "done"
