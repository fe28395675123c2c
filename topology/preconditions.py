"""What has to hold before anything is applied, and that no change of ours brings about."""

from collections import defaultdict
from collections.abc import Iterator, Set

from delayctl.topology.changes import Comparison
from delayctl.topology.compare import compare_policy
from delayctl.topology.duration import Duration
from delayctl.topology.effective import effective
from delayctl.topology.model import CONSISTENT_HASH, ENABLE_CONSISTENT_HASH, Binding, Exchange, Level
from delayctl.topology.names import ANY, Names
from delayctl.topology.parse_routes import PATTERN_WORDS
from delayctl.topology.plan import Refusal
from delayctl.topology.version import DELAYED_RETRY_SINCE, has_delayed_retry, version_text
from delayctl.topology.wording import plural, shorten

_ALL_AT_ONE_LEVEL = ", and let all its routes wait at one level: each of them takes every message then"


def unmet(both: Comparison, *, on_ladder: int, staying: Set[str] = frozenset()) -> Iterator[Refusal]:
    """What does not hold; so many messages are on their way through a ladder, and these exchanges stay of another type."""
    if tuple(both.asked):
        yield from _existing_that_is_not(both)  # To those who remove all, it does not matter.
    yield from _routes_that_its_type_does_not_know(both, staying)
    yield from _policies_of_others(both)
    yield from _another_ladder(both, on_ladder)
    yield from _retries_that_would_not_wait(both)
    yield from _types_that_no_plugin_brings(both)


def _existing_that_is_not(both: Comparison) -> Iterator[Refusal]:
    for reference in both.desired.existing:
        found = (both.live.exchanges if reference.kind == "exchange" else both.live.queues).get(reference.name)
        subject = f"{reference.kind} {reference.name}"
        if found is None:
            fix = "create it first, or remove 'existing: true' so that delayctl declares it"
            yield Refusal(subject, "is marked existing and is not on the broker", fix, blocking=True)
            continue
        kind = found.type if isinstance(found, Exchange) else found.settings.type or "classic"
        if reference.type and kind != reference.type:
            reason = f"is marked existing with type {reference.type}, but is of type {kind}"
            yield Refusal(subject, reason, f"write type: {kind}", blocking=True)


def _routes_that_its_type_does_not_know(both: Comparison, staying: Set[str]) -> Iterator[Refusal]:
    """Where the type is the broker's, as it is left to it or can't be changed, only it knows whether routes take what they say."""
    untyped = {one.name for one in both.desired.existing if one.kind == "exchange" and one.type is None}
    untyped = (untyped | staying) & both.live.exchanges.keys()
    ways: dict[str, list[Binding]] = defaultdict(list)
    for binding in both.desired.bindings if untyped else ():
        if binding.source in untyped:
            ways[binding.source].append(binding)
    written = {exchange.name: exchange.type for exchange in both.desired.exchanges}
    for name, bindings in sorted(ways.items()):
        kind = both.live.exchanges[name].type
        told = (_not_looked_at(kind, binding) or _not_told(kind, written.get(name), binding) for binding in bindings)
        if found := next(filter(None, told), None):
            fix = found[1] + (_ALL_AT_ONE_LEVEL if kind == "fanout" and _part(bindings, both) else "")
            yield Refusal(f"exchange {name}", f"is of type {kind}, {found[0]}", fix, blocking=True)


def _part(ways: list[Binding], both: Comparison) -> bool:
    """Say whether some ways lead into a delay, and others elsewhere."""
    ends = {way.destination for way in ways}
    return len(ends) > 1 and not ends.isdisjoint(both.desired.entrances)


def _not_looked_at(kind: str, way: Binding) -> tuple[str, str] | None:
    """What of a route an exchange of this type does not look at, and what to write instead."""
    if way.arguments:
        reason = "which does not look at headers"
        return (reason, "route by key, or from a headers exchange") if kind in ("fanout", "direct", "topic") else None
    every = "which does not look at keys: a route by key would take every message"
    match kind:
        case "fanout" if way.key:
            return every, "write type: fanout there"
        case "headers" if way.key:
            return every, "write type: headers there, and headers: {NAME: VALUE} in its routes"
        case "direct" if not PATTERN_WORDS.isdisjoint(way.key.split(".")):
            reason = f"which knows no patterns: nothing would come by {shorten(way.key)}"
            return reason, "write the keys out, or route from a topic exchange"
        case _:
            return None


def _not_told(kind: str, written: str | None, way: Binding) -> tuple[str, str] | None:
    """What an exchange of this type looks at and a route does not say, as it was written for another, and what to write instead."""
    if kind in ("direct", "topic") and written in ("fanout", "headers") and not way.key:
        return "which looks at keys: nothing would come by a route without one", f"write type: {kind} there, and keys"
    return None


def _policies_of_others(both: Comparison) -> Iterator[Refusal]:
    """A policy is known by its name alone: to set ours would be to overwrite theirs."""
    found = {policy.name: policy for policy in both.live.policies}
    for policy in both.desired.policies:
        if policy in both.owned or policy.name in both.insisted or policy.name not in found:
            continue
        if differences := compare_policy(policy, found[policy.name]):
            reason = "exists with other settings, and delayctl did not make it"
            fix = f"rename or remove it, or overwrite it with --accept-loss {policy.name}"
            yield Refusal(f"policy {policy.name}", reason, fix, differences, blocking=True)


def _another_ladder(both: Comparison, on_ladder: int) -> Iterator[Refusal]:
    """What is under way on a ladder counts on the steps below it as they are."""
    if on_ladder and has_other_steps(both):
        are = "are" if on_ladder > 1 else "is"
        reason = f"{plural(on_ladder, 'message')} {are} under way on it, and would come early or late with steps of another length"
        fix = "let it run empty first: apply a file without any, with --wait, and then this one"
        yield Refusal(f"ladder {Names(both.asked.prefix).entrance(ANY)}", reason, fix, blocking=True)


def has_other_steps(both: Comparison) -> bool:
    """Say whether all steps of the ladder have another length than they are asked to have."""
    names = Names(both.asked.prefix)
    steps = [wait for wait in both.asked.waits if names.step_of(wait.queue) is not None]
    found = {wait.ttl: ttl for wait in steps if (ttl := _wait_in_force(wait, both)) is not None}
    # Where some steps are as they shall be, others are broken, or a change of all of them has begun: that is to be mended.
    return bool(found) and all(asked != ttl for asked, ttl in found.items())


def _wait_in_force(step: Level, both: Comparison) -> Duration | None:
    """How long messages wait at a step of the ladder by what is ours: in its queue, or in the one that stands in for it."""
    names, live = Names(both.asked.prefix), both.live
    is_bound = Binding(step.entrance, "queue", step.queue) in live.bindings
    queue = live.queues.get(step.queue if is_bound else names.next(step.name).queue)
    ours = [policy for policy in live.policies if policy.name == names.policy(step.name)]
    return effective(queue, ours, ()).settings.ttl if queue else None


def _retries_that_would_not_wait(both: Comparison) -> Iterator[Refusal]:
    """A release that does not know an argument takes it all the same, and does nothing of what it says."""
    version = both.live.version
    for queue in both.desired.queues:
        if queue.settings.waits_between_retries and not has_delayed_retry(version):
            known_as = f"RabbitMQ {version}" if version else "a broker that does not tell its version"
            reason = f"its retries wait by broker, which {known_as} does not do: what fails would come back at once"
            since = version_text(DELAYED_RETRY_SINCE)
            fix = f"upgrade to {since} or later, or let them wait in levels: remove by: broker"
            yield Refusal(f"queue {queue.name}", reason, fix, blocking=True)


def _types_that_no_plugin_brings(both: Comparison) -> Iterator[Refusal]:
    """A type that a plugin brings can be declared only where the plugin is switched on."""
    known = both.live.exchange_types
    for exchange in both.desired.exchanges if known is not None else ():
        if exchange.type == CONSISTENT_HASH and known is not None and exchange.type not in known:
            reason = f"is of the type {CONSISTENT_HASH}, which the broker does not have: its plugin is not enabled"
            yield Refusal(f"exchange {exchange.name}", reason, ENABLE_CONSISTENT_HASH, blocking=True)
