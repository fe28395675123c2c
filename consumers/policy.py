"""How long a failed message waits before each retry, and when it has had enough."""

from collections.abc import Sequence
from typing import Protocol

from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.model import Level
from delayctl.topology.spec import ROCKETMQ_FIRST_RETRY_LEVEL, ROCKETMQ_MAX_RETRIES
from delayctl.topology.wording import quoted

_NAMES = "write rocketmq, fixed LEVEL, exponential FIRST_WAIT or list LEVEL LEVEL …"


class Policy(Protocol):
    """Says what the n-th retry waits for."""

    def level(self, retry: int) -> str | None:
        """The level of a retry, counted from 1; None where there is none left."""


class ByList:
    """These levels one after the other, the last again and again, so many times in all."""

    def __init__(self, levels: Sequence[str], most: int | None = None) -> None:
        if not levels:
            raise DelayctlError("a retry policy names no level", fix="name at least one")
        self._levels = tuple(levels)
        self._most = len(self._levels) if most is None else most

    def level(self, retry: int) -> str | None:
        """The level of a retry."""
        return self._levels[min(retry, len(self._levels)) - 1] if retry <= self._most else None


def policy_from(text: str, levels: Sequence[Level]) -> Policy:
    """A policy as it is named: `rocketmq`, `fixed 5m`, `exponential 10s`, `list 10s 1m 5m`; levels by name."""
    name, *words = text.split() or [""]
    known = {level.name for level in levels}
    is_named = {"rocketmq": not words, "fixed": len(words) == 1, "exponential": len(words) == 1, "list": bool(words)}
    if not is_named.get(name, False):
        raise BadOption(f"there is no retry policy {quoted(text)}", fix=_NAMES)
    if name == "rocketmq":
        return rocketmq(levels)
    if name == "exponential":
        return exponential(levels, words[0])
    for word in words:
        if word not in known:
            raise BadOption(
                f"the retry policy {quoted(text)} names no level of the topology: {quoted(word)}",
                fix=f"use one of: {', '.join(sorted(known))}",
            )
    return fixed(words[0]) if name == "fixed" else ByList(words)


def fixed(level: str, most: int = ROCKETMQ_MAX_RETRIES) -> Policy:
    """The same wait every time."""
    return ByList([level], most)


def rocketmq(levels: Sequence[Level], most: int = ROCKETMQ_MAX_RETRIES) -> Policy:
    """As RocketMQ: the n-th retry waits level 2 + n, beyond the last level the last one."""
    ordered = [level.name for level in sorted(levels, key=lambda level: level.ttl)]
    return ByList(ordered[ROCKETMQ_FIRST_RETRY_LEVEL - 1 :] or ordered[-1:], most)


def exponential(
    levels: Sequence[Level], first: str | Duration, factor: float = 2.0, most: int = ROCKETMQ_MAX_RETRIES
) -> Policy:
    """Each wait `factor` times the last, each as the next longer level; beyond the longest, the longest."""
    ordered = sorted(levels, key=lambda level: level.ttl)
    wait = float(_wait(first).ms)
    chosen = []
    for _ in range(most):
        chosen += [next((level.name for level in ordered if level.ttl.ms >= wait), ordered[-1].name)] if ordered else []
        wait *= factor
    return ByList(chosen, most)


def _wait(text: str | Duration) -> Duration:
    try:
        return Duration.parse(text) if isinstance(text, str) else text
    except ValueError as error:
        raise BadOption(f"the first wait {error}", fix="write it as 500ms, 10s, 1m30s, 2h or 1d") from error
