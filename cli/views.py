"""Values to text or JSON. Pure: nothing is read, nothing is printed."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import click
from delayctl.topology.arguments import LAZY, exchange_arguments, queue_arguments
from delayctl.topology.duration import Duration
from delayctl.topology.execute import Done, Failed, Outcome, Skipped
from delayctl.topology.model import Binding, Exchange, Policy, Queue, Resource, Settings, Table, thaw
from delayctl.topology.moves import Move, Settle
from delayctl.topology.plan import (
    Change,
    Create,
    Delete,
    Difference,
    Plan,
    Refusal,
    Replace,
    Update,
    Wait,
    resource_of,
    title,
)
from delayctl.topology.wording import escaped_within, plural, visible

_SYMBOLS: dict[type[Change], tuple[str, str]] = {
    Create: ("+", "green"),
    Update: ("~", "yellow"),
    Replace: ("-/+", "yellow"),
    Delete: ("-", "red"),
    Move: ("=>", "yellow"),
    Settle: ("-", "red"),
}
_PAST = {Create: "created", Update: "updated", Replace: "replaced", Delete: "deleted", Move: "moved", Settle: "settled"}
_ACTIONS = {Create: "create", Update: "update", Replace: "replace", Delete: "delete", Move: "move", Settle: "settle"}


def plan_text(plan: Plan, *, source: str, version: str) -> str:
    """A plan as people read it."""
    lines = [*_warning_lines(plan.warnings)]
    if plan.is_empty:
        return "\n".join([*lines, f"No changes. The broker matches {visible(source)}."])
    where = f"virtual host {visible(plan.vhost)}" + (f", RabbitMQ {version}" if version else "")
    body = [line for change in plan.changes for line in _change_lines(change)]
    body += [line for wait in plan.waits for line in _wait_lines(wait)]
    body += [f"  {click.style('  -', fg='red')} {visible(title(change))}  later" for change in plan.afterwards]
    refused = [line for refusal in plan.refusals for line in _refusal_lines(refusal)]
    blocked = ["", "Nothing is applied before this is mended."] if plan.is_blocked else []
    return "\n".join([f"{visible(source)} → {where}", "", *body, *refused, "", *lines, plan_summary(plan), *blocked])


def _change_lines(change: Change) -> Iterator[str]:
    symbol, colour = _SYMBOLS[type(change)]
    resource = resource_of(change)
    is_told = isinstance(change, Create) or isinstance(resource, Binding)
    place = f"on {change.node}" if isinstance(change, Create | Replace) and change.node else ""
    words = [word for word in (_described(resource) if is_told else "", place) if word]
    described = f"  ({', '.join(words)})" if words else ""
    loss = "  and loses what it holds" if isinstance(change, Replace | Delete) and change.accept_loss else ""
    yield f"  {click.style(f'{symbol:>3}', fg=colour)} {visible(title(change))}{visible(described)}{loss}"
    if isinstance(change, Update | Replace):
        yield from _difference_lines(change.differences)


def _wait_lines(wait: Wait) -> Iterator[str]:
    yield f"  {click.style('  …', fg='yellow')} {visible(str(wait))}"
    yield from _difference_lines(wait.differences)


def change_symbol(change: Change) -> str:
    """What stands before a change: + - ~ -/+ =>."""
    return _SYMBOLS[type(change)][0]


def left_text(plan: Plan, *, source: str, is_saved: bool = False) -> str:
    """What an apply leaves to be done later, and how to go on; a saved plan can't, as it is stale now."""
    lines = [f"  {visible(str(wait))}" for wait in plan.waits]
    how = "Go on with the file that the plan was made of" if is_saved else "Go on with the same command"
    how += f" at any time; --wait does it all, up to {plan.altogether}."
    return "\n".join([f"Not all of {source} is done yet:", *lines, how])


def refusals_text(refusals: Iterable[Refusal]) -> str:
    """What can't be done, and what to do about it."""
    return "\n".join(line for refusal in refusals for line in _refusal_lines(refusal))


def _refusal_lines(refusal: Refusal) -> Iterator[str]:
    yield f"  {click.style('  !', fg='red')} {visible(refusal.subject)}: {visible(refusal.reason)}"
    yield from _difference_lines(refusal.differences)
    yield f"        fix: {visible(refusal.fix)}"


def _difference_lines(differences: Sequence[Difference]) -> Iterator[str]:
    for difference in differences:
        yield f"        {difference.field}: {visible(_shown(difference.live))} → {visible(_shown(difference.desired))}"


def _warning_lines(warnings: Sequence[str]) -> Iterator[str]:
    for warning in warnings:
        yield f"{click.style('Warning:', fg='yellow')} {visible(warning)}"
    if warnings:
        yield ""


def plan_summary(plan: Plan) -> str:
    """A plan in one line."""
    counts = Counter(type(change) for change in plan.changes)
    moved = f" {plural(counts[Move], 'way')} to move." if counts[Move] else ""
    moved += " A change that was interrupted to complete." if counts[Settle] else ""
    refused = f" {len(plan.refusals)} refused." if plan.refusals else ""
    later = f", and {len(plan.afterwards)} to delete afterwards" if plan.afterwards else ""
    waits = f" {plural(len(plan.waits), 'queue')} to wait for, up to {plan.altogether}{later}." if plan.waits else ""
    return f"Plan: {counts[Create]} to add, {counts[Update]} to change, {counts[Replace]} to replace, {counts[Delete]} to delete.{moved}{refused}{waits}"


def _described(resource: Resource) -> str:
    match resource:
        case Exchange(type=kind, alternate=alternate):
            return ", ".join([kind, *([f"alternate {alternate}"] if alternate else []), *_unusual(resource)])
        case Queue():
            return ", ".join([*_settings_words(resource.settings), *_unusual(resource)])
        case Policy():
            return ", ".join(f"{name} {thaw(value)}" for name, value in resource.definition)
        case Binding():
            return ", ".join(f"{name}: {_shown(value)}" for name, value in resource.arguments)
        case _:
            assert_never(resource)


def _unusual(resource: Exchange | Queue) -> Iterator[str]:
    """What is not as it is with most objects."""
    if not resource.durable:
        yield "not durable"
    if resource.auto_delete:
        yield "auto-delete"
    if isinstance(resource, Exchange) and resource.internal:
        yield "internal"
    yield from ("lazy" if pair == LAZY else f"{pair[0]} {_shown(pair[1])}" for pair in resource.extra)


def _settings_words(settings: Settings) -> list[str]:
    words = [
        settings.type,
        settings.ttl and f"ttl {settings.ttl}",
        settings.max_length and f"max-length {settings.max_length}",
        settings.max_bytes and f"max-bytes {settings.max_bytes}",
        settings.overflow,
        settings.dead_letter_strategy,
        settings.dead_letter_exchange and f"then to {settings.dead_letter_exchange}",
        settings.waits_between_retries and f"retries wait {settings.retry_min or 0} to {settings.retry_max or 0}",
        settings.delivery_limit and f"delivery limit {settings.delivery_limit}",
    ]
    return [str(word) for word in words if word]


def _shown(value: object) -> str:
    if value is None or value == ():
        return "not set"
    if isinstance(value, Duration):
        return f"{value.ms} ({value})"
    # A text of digits keeps its quotes: the broker tells "60000" from 60000.
    if isinstance(value, bool | tuple | Table) or (isinstance(value, str) and value.isdecimal()):
        return json.dumps(thaw(value), ensure_ascii=False)
    return str(value)


def outcome_text(outcome: Outcome) -> str:
    """One line for what became of a change, more where it failed."""
    what = visible(title(outcome.change))
    match outcome:
        case Done():
            return f"{_PAST[type(outcome.change)]} {what}"
        case Failed(error=error):
            fix = f"\n  fix: {visible(error.fix)}" if error.fix else ""
            return f"{click.style('failed', fg='red')} {what}: {visible(error.what)}{fix}"
        case Skipped():
            return f"skipped {what}: an earlier change failed"
        case _:
            assert_never(outcome)


def applied_text(plan: Plan, outcomes: Sequence[Outcome]) -> str:
    """The last line of an apply."""
    counts = Counter(type(outcome.change) for outcome in outcomes if isinstance(outcome, Done))
    missed = len(plan.changes) - sum(counts.values())
    parts = [f"{counts[Create]} added, {counts[Update]} changed, {counts[Replace]} replaced, {counts[Delete]} deleted"]
    parts += [f"{plural(counts[Move], 'way')} moved"] if counts[Move] else []
    parts += [f"{missed} not done"] if missed else []
    parts += [f"{len(plan.refusals)} refused"] if plan.refusals else []
    parts += [f"{plural(len(plan.waits), 'queue')} to wait for"] if plan.waits else []
    return f"Applied: {', '.join(parts)}."


def plan_json(plan: Plan, *, version: str) -> dict[str, Any]:
    """A plan as programs read it."""
    return {
        "vhost": plan.vhost,
        "prefix": plan.prefix,
        "rabbitmq_version": version,
        "changes": [_change_json(change) for change in plan.changes],
        "refusals": [
            {
                "subject": refusal.subject,
                "reason": refusal.reason,
                "fix": refusal.fix,
                "blocking": refusal.blocking,
                "differences": _differences_json(refusal.differences),
            }
            for refusal in plan.refusals
        ],
        "waits": [
            {
                "subject": wait.subject,
                "queue": wait.queue,
                "messages": wait.messages,
                "longest_ms": wait.longest.ms,
                "altogether_ms": wait.altogether.ms,
                "then": wait.then,
                "differences": _differences_json(wait.differences),
            }
            for wait in plan.waits
        ],
        "afterwards": [_change_json(change) for change in plan.afterwards],
        "warnings": list(plan.warnings),
        "fingerprint": plan.fingerprint,
    }


def drift_json(plan: Plan) -> list[dict[str, Any]]:
    """What differs between file and broker, each with the sign and the words that plan has for it."""
    changes = [(_SYMBOLS[type(change)][0], title(change), change) for change in plan.changes]
    return [
        *(_drifted(symbol, what, getattr(change, "differences", ())) for symbol, what, change in changes),
        *(_drifted("!", f"{r.subject}: {r.reason}", r.differences, r.fix) for r in plan.refusals),
        *(_drifted("…", str(wait), wait.differences) for wait in plan.waits),
    ]


def _drifted(symbol: str, what: str, differences: Sequence[Difference], fix: str | None = None) -> dict[str, Any]:
    details = [line.strip() for line in _difference_lines(differences)]
    return {"symbol": symbol, "what": what, "details": details, "fix": fix}


def outcomes_json(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """What became of each change."""
    return [
        {
            **_change_json(outcome.change),
            "outcome": type(outcome).__name__.lower(),
            **({"error": outcome.error.what, "fix": outcome.error.fix} if isinstance(outcome, Failed) else {}),
        }
        for outcome in outcomes
    ]


def _change_json(change: Change) -> dict[str, Any]:
    resource = resource_of(change)
    answer = {"action": _ACTIONS[type(change)], **resource_json(resource)}
    if isinstance(change, Update | Replace):
        answer["differences"] = _differences_json(change.differences)
    if isinstance(change, Move):
        answer |= {side: list(map(resource_json, getattr(change, side))) for side in ("before", "after")}
    if isinstance(change, Create | Replace) and change.node:
        answer["node"] = change.node
    if isinstance(change, Replace | Delete):
        answer["accept_loss"] = change.accept_loss
    return answer


def resource_json(resource: Resource) -> dict[str, Any]:
    """An object in the words of the management API."""
    match resource:
        case Exchange():
            return {
                "kind": "exchange",
                "name": resource.name,
                "type": resource.type,
                "durable": resource.durable,
                "auto_delete": resource.auto_delete,
                "internal": resource.internal,
                "arguments": exchange_arguments(resource),
            }
        case Queue():
            return {
                "kind": "queue",
                "name": resource.name,
                "durable": resource.durable,
                "auto_delete": resource.auto_delete,
                "arguments": queue_arguments(resource),
            }
        case Policy():
            definition = {name: thaw(value) for name, value in resource.definition}
            return {"kind": "policy", "name": resource.name, "pattern": resource.pattern, "definition": definition}
        case Binding():
            return {
                "kind": "binding",
                "source": resource.source,
                "destination": resource.destination,
                "destination_type": resource.kind,
                "routing_key": resource.key,
                "arguments": {name: thaw(value) for name, value in resource.arguments},
            }
        case _:
            assert_never(resource)


def _differences_json(differences: Sequence[Difference]) -> list[dict[str, Any]]:
    return [{"field": d.field, "live": _plain(d.live), "desired": _plain(d.desired)} for d in differences]


def _plain(value: object) -> object:
    return value.ms if isinstance(value, Duration) else thaw(value)


def to_json_text(value: object) -> str:
    """JSON as it is printed."""
    return json.dumps(escaped_within(value), indent=2, ensure_ascii=False)
