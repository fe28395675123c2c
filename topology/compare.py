"""Object by object: which settings differ, arguments and policies taken together."""

from collections.abc import Iterable
from dataclasses import fields, replace

from delayctl.topology.arguments import argument_name, policy_key
from delayctl.topology.duration import Duration
from delayctl.topology.effective import Effective, default_of, effective
from delayctl.topology.live import Live
from delayctl.topology.model import Exchange, Policy, Queue, Settings
from delayctl.topology.plan import Difference, Refusal

_SETTINGS = tuple(field.name for field in fields(Settings))


def compare_exchange(desired: Exchange, found: Exchange) -> tuple[Difference, ...]:
    """What an exchange has to be declared anew for."""
    return _compare(desired, found, ("type", "alternate", "durable", "auto_delete", "internal", "extra"))


def compare_policy(desired: Policy, found: Policy) -> tuple[Difference, ...]:
    """What a policy has to be set anew for, key by key."""
    before, after = dict(found.definition), dict(desired.definition)
    keys = sorted(before.keys() | after.keys())
    definition = (Difference(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key))
    return (*_compare(desired, found, ("pattern", "apply_to", "priority")), *definition)


def compare_queue(desired: Queue, found: Queue, live: Live, policies: tuple[Policy, ...]) -> tuple[Difference, ...]:
    """What a queue has to be declared anew for; a setting that a policy already gives it does not count."""
    in_force = effective(found, policies, live.operator_policies).settings
    own = tuple(
        Difference(argument_name(name), have, want)
        for name in _SETTINGS
        if not _is_satisfied(
            name,
            want := getattr(desired.settings, name),
            have := getattr(found.settings, name),
            getattr(in_force, name),
        )
    )
    return (*own, *_compare(desired, found, ("durable", "auto_delete", "extra")))


def policy_drift(
    queue: Queue, live: Live, policies: tuple[Policy, ...], ours: tuple[Policy, ...], *, is_delay: bool
) -> Refusal | None:
    """How policies of others bend a queue that is itself declared as it should be, or None."""
    found = live.queues.get(queue.name)
    if found and queue.settings.type is None:
        queue = replace(queue, settings=replace(queue.settings, type=found.settings.type))
    wanted = effective(queue, ours, ()).settings
    actual = effective(queue, policies, live.operator_policies)
    # A business queue may well be governed by its owner's policies; only what the file asks for is checked.
    names = [name for name in _SETTINGS if is_delay or getattr(wanted, name) is not None]
    differences = tuple(
        Difference(policy_key(name) or name, getattr(actual.settings, name), getattr(wanted, name))
        for name in names
        if not _is_same(name, getattr(wanted, name), getattr(actual.settings, name))
    )
    if not differences:
        return None
    return Refusal(
        f"queue {queue.name}", _drift_reason(actual, differences, ours), _drift_fix(actual, ours), differences
    )


def _drift_reason(actual: Effective, differences: tuple[Difference, ...], ours: tuple[Policy, ...]) -> str:
    changed = ", ".join(f"{d.field} is {_spelled(d.live)} instead of {_spelled(d.desired)}" for d in differences)
    return f"{changed}: {_culprit(actual, ours)[1]} applies to it"


def _drift_fix(actual: Effective, ours: tuple[Policy, ...]) -> str:
    command, described, name = _culprit(actual, ours)
    return f"narrow the pattern of {described.split(' (')[0]}, or remove it: rabbitmqctl {command} {name}"


def _culprit(actual: Effective, ours: tuple[Policy, ...]) -> tuple[str, str, str]:
    """The policy of others to speak of: rabbitmqctl's word for removing it, a description, the name."""
    if actual.policy is not None and actual.policy not in ours:
        return "clear_policy", f"policy {actual.policy.name} (priority {actual.policy.priority})", actual.policy.name
    assert actual.operator_policy is not None
    return "clear_operator_policy", f"operator policy {actual.operator_policy.name}", actual.operator_policy.name


def _is_satisfied(name: str, want: object, have: object, in_force: object) -> bool:
    if name == "type" and want is None:
        return True  # The file leaves the choice to the broker.
    return _is_same(name, want, have) or (have is None and _is_same(name, want, in_force))


def _is_same(name: str, want: object, have: object) -> bool:
    default = default_of(name)
    return (default if want is None else want) == (default if have is None else have)


def _spelled(value: object) -> str:
    return "not set" if value is None else f"{value.ms} ms" if isinstance(value, Duration) else str(value)


def _compare(desired: object, found: object, names: Iterable[str]) -> tuple[Difference, ...]:
    pairs = ((name, getattr(found, name), getattr(desired, name)) for name in names)
    return tuple(Difference(name, before, after) for name, before, after in pairs if before != after)
