"""What a queue really does: its arguments, the one policy and the one operator policy that apply, taken together."""

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from delayctl.topology.arguments import ALTERNATE_EXCHANGE, policy_settings
from delayctl.topology.model import Exchange, Policy, Queue, Settings

_SMALLEST_WINS = frozenset({"ttl", "max_length", "max_bytes", "expires", "delivery_limit", "retry_min", "retry_max"})
_POLICY_WINS_ON_QUORUM = frozenset({"overflow", "retry_type"})
_FIELDS = tuple(field.name for field in fields(Settings) if field.name != "type")
_APPLIES_TO_QUEUE = {"queues", "all"}
_APPLIES_TO_TYPE = {"classic": "classic_queues", "quorum": "quorum_queues", "stream": "streams"}
_APPLIES_TO_EXCHANGE = {"exchanges", "all"}
_DEFAULTS = {"overflow": "drop-head", "dead_letter_strategy": "at-most-once", "type": "classic"}


@dataclass(frozen=True, slots=True)
class Effective:
    """The settings in force, and the policies that had a say in them."""

    settings: Settings
    policy: Policy | None = None
    operator_policy: Policy | None = None


def effective(queue: Queue, policies: Iterable[Policy], operator_policies: Iterable[Policy]) -> Effective:
    """Work out the settings in force, as the broker does."""
    user, operator = winner(queue, policies), winner(queue, operator_policies)
    if user is None and operator is None:
        return Effective(queue.settings)
    by_policy = _overlay(_settings(user), _settings(operator))
    is_quorum = queue.settings.type == "quorum"
    combined: dict[str, Any] = {
        name: _combine(
            name,
            getattr(queue.settings, name),
            getattr(by_policy, name),
            second_wins=is_quorum and name in _POLICY_WINS_ON_QUORUM,
        )
        for name in _FIELDS
    }
    return Effective(replace(queue.settings, **combined), user, operator)


def winner(queue: Queue, policies: Iterable[Policy]) -> Policy | None:
    """The one policy that applies to a queue: policies never merge, the highest priority takes all."""
    matching = [policy for policy in policies if _matches(policy, queue)]
    return max(matching, key=lambda policy: policy.priority, default=None)


def alternate_in_force(exchange: Exchange, policies: Iterable[Policy]) -> str | None:
    """The alternate exchange that counts: the exchange's own, else that of the one policy that applies to it."""
    if exchange.alternate is not None:
        return exchange.alternate
    matching = [p for p in policies if p.apply_to in _APPLIES_TO_EXCHANGE and _names(p, exchange.name)]
    applied = max(matching, key=lambda policy: policy.priority, default=None)
    alternate = dict(applied.definition).get(ALTERNATE_EXCHANGE) if applied else None
    return alternate if isinstance(alternate, str) else None


def default_of(field: str) -> str | None:
    """What the broker does where this setting is not given."""
    return _DEFAULTS.get(field)


def is_readable(pattern: str) -> bool:
    """Say whether a policy's pattern can be evaluated here; the broker's dialect (PCRE) knows more than Python's."""
    return _compiled(pattern) is not None


def _matches(policy: Policy, queue: Queue) -> bool:
    of_its_type = _APPLIES_TO_TYPE.get(queue.settings.type or "classic")
    if policy.apply_to not in _APPLIES_TO_QUEUE and policy.apply_to != of_its_type:
        return False
    return _names(policy, queue.name)


def _names(policy: Policy, name: str) -> bool:
    compiled = _compiled(policy.pattern)
    return compiled is not None and compiled.search(name) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    with warnings.catch_warnings():
        # Python warns where it reads a pattern, such as [[:digit:]], differently from PCRE.
        warnings.simplefilter("error")
        try:
            return re.compile(pattern)
        except (re.error, OverflowError, RecursionError, Warning):
            return None


def _settings(policy: Policy | None) -> Settings:
    return policy_settings(policy.definition) if policy else Settings()


def _overlay(below: Settings, above: Settings) -> Settings:
    overlaid: dict[str, Any] = {
        name: _combine(name, getattr(below, name), getattr(above, name), second_wins=True) for name in _FIELDS
    }
    return Settings(**overlaid)


def _combine(name: str, first: Any, second: Any, *, second_wins: bool) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if name in _SMALLEST_WINS:
        return min(first, second)
    return second if second_wins else first
