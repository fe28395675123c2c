"""Rules about who gets a message: twice, by another's way out, or without having been asked for it."""

from collections.abc import Iterator

from delayctl.topology.findings import Found, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.model import Binding
from delayctl.topology.samples import takes_every_key
from delayctl.topology.scene import Wait
from delayctl.topology.spec import RouteSpec
from delayctl.topology.trails import Trail, exit_bindings
from delayctl.topology.wording import plural, quoted

IGNORED_PREFIX = "x-"


def delivered_twice(context: Context) -> Iterator[Found]:
    """D104: one message, more than one delivery to the same queue."""
    seen: set[tuple[str, str, tuple[str, ...]]] = set()
    for trail in context.trails.all:
        exchange = trail.sample.exchange or "the default exchange"
        for queue, times in _deliveries(context, trail).items():
            place = exchange, queue, tuple(times)
            if len(times) > 1 and place not in seen:
                seen.add(place)
                when = " and ".join(map(_after, times))
                message = (
                    f"a message with key {trail.sample.shown} to {exchange} reaches {queue} {len(times)} times: {when}"
                )
                fix = "let one of the routes take it, by another key or a narrower pattern"
                yield Found(queue, message, fix, trail.sample.line)


def _deliveries(context: Context, trail: Trail) -> dict[str, list[str]]:
    """When each queue gets the message; where it is parked does not count."""
    found: dict[str, list[str]] = {}
    for end in trail.journey.ends:
        if end.fate == "delivered" and end.queue not in (None, context.names.unrouted_queue()):
            found.setdefault(end.queue or "", []).append(str(end.after))
    return found


def _after(time: str) -> str:
    return "at once" if time == "0s" else f"after {time}"


def shared_exit(context: Context) -> Iterator[Found]:
    """D105: a message comes out to targets of other routes as well."""
    for trail in context.trails.all:
        sample = trail.sample
        if sample.parked is not None:
            yield from _parked_elsewhere(context, trail, sample.parked)
        if sample.route is None and sample.retried is None:
            continue
        twice = trail.journey.repeated  # Which is another rule's to tell.
        ways_out = [
            (wait, way_out)
            for wait, way_out in exit_bindings(trail, context.names.exit())
            if way_out.destination not in twice and not _is_meant(context, trail, wait, way_out)
        ]
        if ways_out:
            yield _also_reached(context, trail, *ways_out[0], more=len(ways_out) - 1)


def _parked_elsewhere(context: Context, trail: Trail, park: str) -> Iterator[Found]:
    """What shall be parked, and finds other ways out beside that to its parking queue."""
    at_exit = [hop for hop in trail.journey.passages[0].routed.hops if hop.exchange == context.names.exit()]
    others = [binding for hop in at_exit for binding in hop.matched if binding.destination != park]
    if others:
        more = f" and {plural(len(others) - 1, 'other')}" if len(others) > 1 else ""
        message = (
            f"what is parked in {park} also reaches {others[0].destination}{more},"
            f" by the way out of another route (key {quoted(others[0].key)})"
        )
        fix = "give the route keys that don't fit those of delayctl"
        yield Found(others[0].destination, message, fix, trail.sample.line)


def _also_reached(context: Context, trail: Trail, wait: str, way_out: Binding, *, more: int) -> Found:
    sample, ttl = trail.sample, context.network.queues[wait].settings.ttl
    what = (
        f"a retry of {sample.retried}" if sample.retried else f"a message with key {sample.shown} to {sample.exchange}"
    )
    others = f" and {plural(more, 'other')}" if more else ""
    message = f"{what} also reaches {way_out.destination}{others} after {ttl}, by the way out of another route (key {quoted(way_out.key)})"
    return Found(way_out.destination, message, "give the routes keys that don't fit each other", sample.line)


def _is_meant(context: Context, trail: Trail, wait: str, way_out: Binding) -> bool:
    """Say whether a message comes out to a target of a route that has taken it in."""
    if trail.sample.retried is not None:
        return way_out.destination == trail.sample.retried
    ways_in = ((hop.exchange, wait) for hop in trail.journey.passages[0].routed.hops)
    # What the broker has beyond the file is nobody's route, and not for this rule to judge.
    is_foreign = way_out.destination not in context.delayed_targets
    return is_foreign or any(way_out.destination in context.targets_by_way_in.get(way, ()) for way in ways_in)


def ignored_header(context: Context) -> Iterator[Found]:
    """D107: the broker does not look at the header that a route looks for."""
    for route in context.spec.routes:
        wanted = dict(route.headers)
        how = wanted.pop("x-match", "all")
        if route.headers and not wanted and how in ("any", "any-with-x"):
            message = f"x-match: {how} without a header to look for takes no message of {route.source}"
            yield Found(
                route.source or "", message, "add a header, or remove x-match to take every message", route.line
            )
        ignored = sorted(name for name in wanted if name.startswith(IGNORED_PREFIX))
        if not ignored or how in ("all-with-x", "any-with-x"):
            continue
        what = "takes every message" if how == "all" else "takes no message"
        is_all = len(ignored) == len(wanted)
        effect = f"so the route {what} of {route.source}" if is_all else "the other headers decide alone"
        fix = f"name the header without x-, or write x-match: {how}-with-x (RabbitMQ 3.10 and later)"
        message = f"the broker does not look at {', '.join(ignored)}, {effect}"
        yield Found(route.source or "", message, fix, route.line)


def other_keys(context: Context) -> Iterator[Found]:
    """D108: the way in takes every key, the way out does not."""
    for route in context.spec.routes:
        if not takes_every_key(context, route) or route.source in context.trails.known_rejections:
            continue
        for wait in _waits_of(context, route):
            exit = context.network.exchanges.get(wait.exit)
            if exit is None or exit.type not in ("topic", "direct") or wait.queue.settings.dead_letter_key is not None:
                continue
            if exit.name in context.open_ended or context.network.takes_all(exit.name):
                continue
            knows = f"{exit.name} does not know" if exit.name else "names no queue"
            fate = f"go to {exit.alternate}" if exit.alternate else "are lost"
            message = (
                f"{route.source} sends messages of every key into {wait.queue.name};"
                f" those with a key that {knows} {fate} after {wait.queue.settings.ttl}"
            )
            yield Found(wait.queue.name, message, 'write key: "#" if all of them are meant', route.line)


def _waits_of(context: Context, route: RouteSpec) -> Iterator[Wait]:
    if route.level is not None:
        yield context.waits[context.wait_behind(route.level)]
    for target in route.targets if route.level is None else ():
        if target.kind == "queue" and target.name in context.waits:
            yield context.waits[target.name]


def not_all_compared(context: Context) -> Iterator[Found]:
    """D110: more patterns than lint holds against each other."""
    if not context.trails.are_complete:
        message = "so many routes fit each other's keys that not all of them were looked at for D101 to D105"
        fix = "use keys of their own, and fewer patterns that begin with * or #"
        yield Found("routes", message, fix, context.spec.routes[0].line)


RULES: tuple[Rule, ...] = (
    Rule(
        "D104",
        "delivered-twice",
        Severity.WARNING,
        "One message reaches the same queue more than once.",
        "An exchange copies a message to every wait that a binding matches, and each copy is delivered when its own wait ends.",
        delivered_twice,
    ),
    Rule(
        "D105",
        "shared-exit",
        Severity.WARNING,
        "A message comes out to the target of another route as well.",
        "All levels come out of one exchange, which looks at the key alone: it knows neither the level nor the source.",
        shared_exit,
    ),
    Rule(
        "D107",
        "ignored-header",
        Severity.ERROR,
        "A route looks for a header whose name begins with x-, or for any of none.",
        "A headers exchange skips names that begin with x- unless x-match ends with -with-x; with nothing left to look at, x-match: all"
        " matches every message and x-match: any none.",
        ignored_header,
    ),
    Rule(
        "D108",
        "other-keys",
        Severity.INFO,
        "A wait lets in keys that are not let out.",
        "A fanout or headers exchange does not look at the key and # takes any, but the exit looks at it.",
        other_keys,
    ),
    Rule(
        "D110",
        "not-all-compared",
        Severity.INFO,
        "There are more ways of messages than lint looks at.",
        "Where every route fits the keys of every other, the ways grow with the square of their number.",
        not_all_compared,
    ),
)
