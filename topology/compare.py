"""Object by object: which settings differ, arguments and policies taken together."""

from collections.abc import Iterable
from dataclasses import fields, replace
from operator import attrgetter

from delayctl.topology.arguments import argument_name, policy_key
from delayctl.topology.effective import Effective, default_of, effective
from delayctl.topology.live import Live
from delayctl.topology.model import Arguments, Exchange, Policy, Queue, Settings
from delayctl.topology.plan import Difference, Refusal
from delayctl.topology.wording import command, visible

_SETTINGS = tuple(field.name for field in fields(Settings))
_KEEPS_A_PROMISE = frozenset(map(policy_key, ("ttl", "dead_letter_exchange", "dead_letter_key", "expires")))
_but_type = attrgetter(*(name for name in _SETTINGS if name != "type"))


def compare_exchange(desired: Exchange, found: Exchange) -> tuple[Difference, ...]:
    """What an exchange has to be declared anew for."""
    if desired == found:
        return ()
    own = _compare(desired, found, ("type", "alternate", "durable", "auto_delete", "internal"))
    return (*own, *_compare_arguments(desired.extra, found.extra))


def compare_policy(desired: Policy, found: Policy) -> tuple[Difference, ...]:
    """What a policy has to be set anew for, key by key."""
    own = _compare(desired, found, ("pattern", "apply_to", "priority"))
    return (*own, *_compare_arguments(desired.definition, found.definition))


def compare_queue(desired: Queue, found: Queue, live: Live, policies: tuple[Policy, ...]) -> tuple[Difference, ...]:
    """What a queue has to be declared anew for; a setting that a policy already gives it does not count."""
    if _is_declared_alike(desired, found):
        return ()
    in_force = effective(found, policies, live.operator_policies).settings
    # A TTL that is a text, say, is none to the broker, but it is what has to be shown as being there.
    unreadable = dict(found.extra)
    own = tuple(
        Difference(argument_name(name), unreadable.pop(argument_name(name), have), want)
        for name in _SETTINGS
        if not _is_satisfied(
            name,
            want := getattr(desired.settings, name),
            have := getattr(found.settings, name),
            getattr(in_force, name),
        )
    )
    return (
        *own,
        *_compare(desired, found, ("durable", "auto_delete")),
        *_compare_arguments(desired.extra, tuple(unreadable.items())),
    )


def _is_declared_alike(desired: Queue, found: Queue) -> bool:
    """Say whether nothing needs a closer look; the file may leave the type to the broker."""
    return (
        desired.settings.type in (None, found.settings.type)
        and _but_type(desired.settings) == _but_type(found.settings)
        and (desired.durable, desired.auto_delete, desired.extra) == (found.durable, found.auto_delete, found.extra)
    )


def policy_drift(
    queue: Queue,
    live: Live,
    policies: tuple[Policy, ...],
    ours: tuple[Policy, ...],
    *,
    is_delay: bool,
    vhost: str = "/",
) -> Refusal | None:
    """How policies of others bend a queue that is itself declared as it should be, or None."""
    found = live.queues.get(queue.name)
    if found and queue.settings.type is None:
        queue = replace(queue, settings=replace(queue.settings, type=found.settings.type))
    wanted = effective(queue, ours, ()).settings
    actual = effective(queue, policies, live.operator_policies)
    # A business queue may well be governed by its owner's policies; only what the file asks for is checked.
    names = [name for name in _SETTINGS if is_delay or getattr(wanted, name) is not None]
    differences = _bent(wanted, actual.settings, names)
    if not differences:
        return None
    is_user = bool(_bent(wanted, effective(queue, policies, ()).settings, names))
    culprit, fix = _culprit(actual, vhost, is_user=is_user)
    return Refusal(f"queue {queue.name}", f"{culprit} changes what it does", fix, differences)


def breaks_a_promise(drift: Refusal) -> bool:
    """Say whether a delay queue loses messages by it, keeps them, or lets them out at another time or with another key."""
    return any(difference.field in _KEEPS_A_PROMISE for difference in drift.differences)


def _bent(wanted: Settings, actual: Settings, names: Iterable[str]) -> tuple[Difference, ...]:
    trios = ((name, getattr(actual, name), getattr(wanted, name)) for name in names)
    return tuple(Difference(policy_key(n) or n, have, want) for n, have, want in trios if not _is_same(n, want, have))


def _culprit(actual: Effective, vhost: str, *, is_user: bool) -> tuple[str, str]:
    """The policy of others to speak of, and how to be rid of it."""
    policy = actual.policy if is_user else actual.operator_policy
    assert policy is not None
    kind, clear = ("policy", "clear_policy") if is_user else ("operator policy", "clear_operator_policy")
    described = f"{kind} {visible(policy.name)}"
    fix = f"narrow the pattern of {described}, or remove it: {command('rabbitmqctl', clear, '-p', vhost, policy.name)}"
    return described + (f" (priority {policy.priority})" if is_user else ""), fix


def _is_satisfied(name: str, want: object, have: object, in_force: object) -> bool:
    if name == "type" and want is None:
        return True  # The file leaves the choice to the broker.
    return _is_same(name, want, have) or (have is None and _is_same(name, want, in_force))


def _is_same(name: str, want: object, have: object) -> bool:
    default = default_of(name)
    return (default if want is None else want) == (default if have is None else have)


def _compare_arguments(desired: Arguments, found: Arguments) -> tuple[Difference, ...]:
    before, after = dict(found), dict(desired)
    pairs = ((key, before.get(key), after.get(key)) for key in sorted(before.keys() | after.keys()))
    return tuple(Difference(key, have, want) for key, have, want in pairs if have != want)


def _compare(desired: object, found: object, names: Iterable[str]) -> tuple[Difference, ...]:
    pairs = ((name, getattr(found, name), getattr(desired, name)) for name in names)
    return tuple(Difference(name, before, after) for name, before, after in pairs if before != after)
