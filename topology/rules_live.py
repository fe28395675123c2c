"""Rules that look at a broker: what others have set there, what waits there, and what its version gets wrong."""

from collections.abc import Iterator

from delayctl.topology.arguments import policy_settings
from delayctl.topology.effective import Effective, default_of, effective
from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.footprint import shape_of
from delayctl.topology.lint_context import Context
from delayctl.topology.model import Policy, Queue, Settings
from delayctl.topology.permissions import Lack, lacking
from delayctl.topology.routing import DEFAULT_EXCHANGE
from delayctl.topology.version import ON_DISK_SINCE, parse_version
from delayctl.topology.version_bugs import BUGS, Bug
from delayctl.topology.wording import plural, quoted

_EFFECTS = {
    "ttl": "messages leave after {live}, not {desired}",
    "max_length": "it holds {live} messages, not {desired}",
    "max_bytes": "it holds {live} bytes, not {desired}",
    "expires": "it is deleted with its messages {live} after its last use",
    "overflow": "its overflow is {live}, not {desired}",
    "dead_letter_exchange": "messages leave for {live}, not {desired}",
    "dead_letter_key": "every message leaves with the key {live}",
    "dead_letter_strategy": "its dead-lettering is {live}, not {desired}",
}
_ON_RETRIES = {
    "delivery_limit": "a message is tried again {live} times, not {desired}",
    "retry_type": "what waits before it is tried again is what is {live}, not {desired}",
    "retry_min": "retries wait steps of {live}, not {desired}",
    "retry_max": "retries wait {live} at most, not {desired}",
}
_WITHOUT = {
    "ttl": "messages never leave",
    "max_length": "its length has no limit, not {desired}",
    "max_bytes": "its size has no limit, not {desired}",
    "dead_letter_exchange": "messages are deleted when they expire",
}


def foreign_policy(context: Context) -> Iterator[Found]:
    """D401: somebody else's policy decides how long messages wait."""
    if context.live is None:
        return
    for name, queue in context.declared.items():
        found = context.in_force[name]
        if any(True for _ in _named(context, found)):
            yield from _overruled(context, queue, found)


def _overruled(context: Context, queue: Queue, found: Effective) -> Iterator[Found]:
    policies = context.topology.policies
    if found.policy is not None and _is_how_it_waits(context, queue, found.policy):
        policies = (*policies, found.policy)
    meant, live = effective(queue, policies, ()).settings, found.settings
    is_wait = meant.ttl is not None and meant.dead_letter_exchange is not None
    effects = [text for field in _EFFECTS if (text := _effect(field, meant, live))]
    if not is_wait:
        effects = list(_effects_on_others(context, meant, live))
    if effects:
        culprits = " and ".join(_named(context, found))
        message = f"{culprits} overrules the file at {queue.name}: {'; '.join(effects)}"
        fix = "let its owner narrow its pattern"
        if queue.name in context.topology.delay_queues:
            fix += ", or raise policy_priority with settings: policy"
        yield Found(queue.name, message, fix, _line(context, queue.name))


def _is_how_it_waits(context: Context, queue: Queue, policy: Policy) -> bool:
    """Say whether a queue waits by this policy and by nothing else, and what has waited there goes on within the file."""
    own, given = queue.settings, policy_settings(policy.definition)
    is_all_by_policy = own.ttl is None and own.dead_letter_exchange is None and given.ttl is not None
    if not is_all_by_policy or queue.name not in context.own_queues or _is_end(context, queue.name):
        return False
    if given.dead_letter_exchange == DEFAULT_EXCHANGE:
        return given.dead_letter_key in context.own_queues
    return given.dead_letter_exchange in context.exchange_types


def _is_end(context: Context, queue: str) -> bool:
    """Say whether messages have waited when they come to a queue, so that they should stay there."""
    retried = {name for retry in context.spec.retries for name in (retry.queue, retry.park)}
    return queue in context.delayed_targets or queue in retried


def _effects_on_others(context: Context, meant: Settings, live: Settings) -> Iterator[str]:
    """What a policy does to a queue that messages should stay in until somebody takes them."""
    exit = live.dead_letter_exchange
    is_known = exit is None or exit in context.network.exchanges
    way = f"leaves for {exit or 'the default exchange'}" + ("" if is_known else ", which is not there: it is lost")
    if live.ttl is not None and live.ttl != meant.ttl:
        yield f"what nobody takes within {live.ttl} {'is deleted' if exit is None else way}"
    elif exit != meant.dead_letter_exchange and not is_known:
        yield f"what is rejected {way}"
    if live.expires is not None and live.expires != meant.expires:
        yield _EFFECTS["expires"].format(live=live.expires)
    for field, text in _ON_RETRIES.items():
        wanted, found = getattr(meant, field), getattr(live, field)
        if wanted is not None and found != wanted:
            yield text.format(live=found, desired=wanted)


def _line(context: Context, queue: str) -> int:
    """The line that a queue comes from; for the net under all levels, that of the first."""
    wait, own = context.waits.get(queue), context.own_queues.get(queue)
    return wait.line if wait else own.line if own else min(_delay_lines(context), default=1)


def _delay_lines(context: Context) -> Iterator[int]:
    yield from (level.line for level in context.spec.levels)
    if context.spec.ladder:
        yield context.spec.ladder.line


def _effect(field: str, meant: Settings, live: Settings) -> str | None:
    desired, found = (getattr(settings, field) or default_of(field) for settings in (meant, live))
    if desired == found:
        return None
    template = _WITHOUT.get(field, "") if found is None else _EFFECTS[field]
    return template.format(live=_shown(found), desired=_shown(desired))


def _shown(value: object) -> str:
    if value is None:
        return "without limit"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _named(context: Context, found: Effective) -> Iterator[str]:
    own = {policy.name for policy in context.topology.policies}
    if found.policy is not None and found.policy.name not in own:
        yield _policy_text("policy", found.policy)
    if found.operator_policy is not None:
        yield _policy_text("operator policy", found.operator_policy)


def _policy_text(kind: str, policy: Policy) -> str:
    return f"{kind} {quoted(policy.name)} (pattern {quoted(policy.pattern)}, priority {policy.priority})"


def transient_messages(context: Context) -> Iterator[Found]:
    """D402: what waits would not outlive a restart."""
    for name, wait in context.waits.items():
        found = context.facts.waiting.get(name) if context.facts else None
        transient = found.messages - found.persistent if found else 0
        if found and transient > 0:
            message = f"{transient:,} of {plural(found.messages, 'message')} waiting in {name} are transient: a restart of the broker loses them"
            yield Found(name, message, "let publishers set delivery_mode 2 (persistent)", wait.line)


def version_bug(context: Context) -> Iterator[Found]:
    """D403: this release does something wrong with this topology."""
    version = parse_version(context.live.version) if context.live else None
    for bug in BUGS if version else ():
        touched = bug.touched(context) if version and bug.is_in(version) else []
        if touched:
            yield _bug_found(context, bug, touched)


def _bug_found(context: Context, bug: Bug, touched: list[str]) -> Found:
    more = f" and {len(touched) - 1} more" if len(touched) > 1 else ""
    version = context.live.version if context.live else ""
    message = f"RabbitMQ {version} has a bug that touches {touched[0]}{more}: {bug.effect} ({bug.source})"
    wait, own = context.waits.get(touched[0]), context.own_queues.get(touched[0])
    line = wait.line if wait else own.line if own else context.exchange_lines.get(touched[0], 1)
    return Found(touched[0], message, f"upgrade to {bug.fixed_in}, or later", line)


def missing_permission(context: Context) -> Iterator[Found]:
    """D404: a user of the file can't do its work."""
    if context.facts is not None and context.facts.permissions is not None:
        for lack in lacking(context.spec, context.topology, context.facts.permissions):
            yield _lack_found(lack)


def _lack_found(lack: Lack) -> Found:
    more = f" and {len(lack.names) - 1} more" if len(lack.names) > 1 else ""
    why = (
        "it has no permissions in this virtual host"
        if lack.pattern is None
        else f"its pattern is {quoted(lack.pattern)}"
    )
    message = f"user {lack.user} can't {lack.verb} {lack.names[0]}{more}, as a {lack.role} has to: {why}"
    fix = "grant what 'delayctl permissions' prints for it"
    return Found(lack.user, message, fix, lack.line)


def kept_in_memory(context: Context) -> Iterator[Found]:
    """D407: this release keeps in memory what could wait on disk."""
    version = parse_version(context.live.version) if context.live else None
    if context.live is None or version is None or version >= ON_DISK_SINCE:
        return
    for wait in context.kinds_of_waits:
        if wait.level is not None and shape_of(wait.queue) == "classic":
            message = f"RabbitMQ {context.live.version} keeps what waits in {wait.queue.name} in memory as well as on disk: it takes fewer messages, and lets many go late"
            yield Found(
                wait.queue.name, message, "set lazy: true for the level, or upgrade to 3.12 or later", wait.line
            )


RULES: tuple[Rule, ...] = (
    Rule(
        "D401",
        "foreign-policy",
        Severity.ERROR,
        "A policy of somebody else decides how a queue of the file behaves.",
        "The smaller of argument and policy is in force for TTL and lengths, one policy alone applies to a queue, and operator policies"
        " beat both.",
        foreign_policy,
        needs_live=True,
    ),
    Rule(
        "D402",
        "transient-messages",
        Severity.WARNING,
        "Transient messages wait in a durable queue.",
        "A durable queue outlives a restart, but of its messages only those that were published as persistent do.",
        transient_messages,
        needs_live=True,
    ),
    Rule(
        "D403",
        "version-bug",
        Severity.WARNING,
        "The broker's release has a bug that touches this topology.",
        "Each is taken from RabbitMQ's own release notes and issues, with the releases that mend it.",
        version_bug,
        needs_live=True,
    ),
    Rule(
        "D404",
        "missing-permission",
        Severity.ERROR,
        "A user under permissions: lacks rights that its role needs.",
        "RabbitMQ closes the channel of a user that touches an object beyond its patterns.",
        missing_permission,
        needs_live=True,
    ),
    Rule(
        "D407",
        "kept-in-memory",
        Severity.INFO,
        "An older broker keeps what waits in memory.",
        "Before 3.12 a classic queue holds its messages in memory until there is too little of it, and is slower and later for it;"
        " a lazy one keeps them on disk alone, as every classic queue of later releases does.",
        kept_in_memory,
        needs_live=True,
    ),
)
