"""Lint: run every rule over a file, and set aside what its author knows of."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from delayctl.topology import (
    rules_copies,
    rules_live,
    rules_names,
    rules_refused,
    rules_room,
    rules_shards,
    rules_waiting,
    rules_ways,
)
from delayctl.topology.facts import Facts
from delayctl.topology.findings import Finding, Found, Report, Rule, Severity
from delayctl.topology.lint_context import Context
from delayctl.topology.live import Live
from delayctl.topology.model import Topology
from delayctl.topology.spec import Silence, Spec


def _nothing(_: Context) -> Iterator[Found]:
    """What is silenced is known only when all other rules have spoken."""
    yield from ()


_USELESS_SILENCE = Rule(
    "D303",
    "useless-silence",
    Severity.INFO,
    "A silence that silences nothing.",
    "It would hide the next finding of that rule, which nobody has looked at yet.",
    _nothing,
)
_BY_THEME = (rules_ways, rules_copies, rules_waiting, rules_room, rules_shards, rules_refused, rules_names, rules_live)
RULES: tuple[Rule, ...] = tuple(
    sorted([*(rule for theme in _BY_THEME for rule in theme.RULES), _USELESS_SILENCE], key=lambda rule: rule.code)
)


def lint(
    spec: Spec,
    topology: Topology,
    *,
    live: Live | None = None,
    facts: Facts | None = None,
    rules: Iterable[Rule] = RULES,
) -> Report:
    """Find what will go wrong with a topology; with a broker, also what is wrong there. Reads nothing, writes nothing."""
    context = Context(spec, topology, live, facts)
    active = [rule for rule in rules if live is not None or not rule.needs_live]
    found = dict.fromkeys(_finding(rule, item) for rule in active for item in rule.check(context))
    known = {(silence.rule, silence.at): silence for silence in reversed(spec.silences)}
    silenced = {
        finding: silence
        for finding in found
        if (silence := known.get((finding.code, finding.at)) or known.get((finding.code, None)))
    }
    useless = _useless(spec.silences, found, {rule.code for rule in active})
    left = [*(finding for finding in found if finding not in silenced), *useless]
    return Report(_in_order(left), tuple((finding, silenced[finding]) for finding in _in_order(silenced)))


def _finding(rule: Rule, found: Found) -> Finding:
    severity = found.severity or rule.severity
    return Finding(rule.code, severity, found.at, found.message, rule.reason, found.fix, found.line)


def _useless(silences: Iterable[Silence], findings: Iterable[Finding], active: set[str]) -> Iterator[Finding]:
    """Silences that no finding needs, or that are there twice; of rules that had no say this time, nothing is known."""
    found = {place for finding in findings for place in ((finding.code, finding.at), (finding.code, None))}
    known = [rule.code for rule in RULES]
    first: dict[tuple[str, str | None], Silence] = {}
    for silence in silences:
        where = f"{silence.rule} at {silence.at}" if silence.at else silence.rule
        earlier = first.setdefault((silence.rule, silence.at), silence)
        message, fix = f"nothing is found for {where}, so there is nothing to ignore", "remove it from lint.ignore"
        if silence.rule not in known:
            message, fix = (
                f"there is no rule {silence.rule}, so there is nothing to ignore",
                _meant(silence.rule, known),
            )
        elif earlier is not silence:
            message = f"{where} is ignored in line {earlier.line} already"
        elif (silence.rule, silence.at) in found or silence.rule not in active:
            continue
        yield _finding(_USELESS_SILENCE, Found(silence.at or silence.rule, message, fix, silence.line))


def _meant(code: str, known: Iterable[str]) -> str:
    alike = get_close_matches(code, known, n=1)
    return f"did you mean {alike[0]}?" if alike else "write the code as validate shows it"


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by line."""
    return tuple(sorted(findings, key=lambda finding: (finding.severity.rank, finding.line, finding.code, finding.at)))
