"""Lint: run every rule over a file, and set aside what its author knows of."""

from collections.abc import Iterable, Iterator

from delayctl.topology import rules_copies, rules_live, rules_names, rules_room, rules_waiting, rules_ways
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
_BY_THEME = (rules_ways, rules_copies, rules_waiting, rules_room, rules_names, rules_live)
RULES: tuple[Rule, ...] = tuple(
    sorted([*(rule for theme in _BY_THEME for rule in theme.RULES), _USELESS_SILENCE], key=lambda rule: rule.code)
)


def lint(spec: Spec, topology: Topology, *, live: Live | None = None, facts: Facts | None = None) -> Report:
    """Find what will go wrong with a topology; with a broker, also what is wrong there. Reads nothing, writes nothing."""
    context = Context(spec, topology, live, facts)
    active = [rule for rule in RULES if live is not None or not rule.needs_live]
    found = dict.fromkeys(_finding(rule, item) for rule in active for item in rule.check(context))
    known = {(silence.rule, silence.at): silence for silence in reversed(spec.silences)}
    silenced = {
        finding: silence
        for finding in found
        if (silence := known.get((finding.code, finding.at)) or known.get((finding.code, None)))
    }
    useless = _useless(spec.silences, silenced.values(), {rule.code for rule in active})
    left = [*(finding for finding in found if finding not in silenced), *useless]
    return Report(_in_order(left), tuple((finding, silenced[finding]) for finding in _in_order(silenced)))


def _finding(rule: Rule, found: Found) -> Finding:
    return Finding(rule.code, rule.severity, found.at, found.message, rule.reason, found.fix, found.line)


def _useless(silences: Iterable[Silence], used: Iterable[Silence], active: set[str]) -> Iterator[Finding]:
    """Silences that no finding needed; of rules that had no say this time, nothing is known."""
    needed = set(used)
    known = {rule.code for rule in RULES}
    for silence in silences:
        if silence not in needed and (silence.rule in active or silence.rule not in known):
            where = f" at {silence.at}" if silence.at else ""
            message = f"nothing is found for {silence.rule}{where}, so there is nothing to ignore"
            fix = (
                "remove it from lint.ignore"
                if silence.rule in known
                else f"there is no rule {silence.rule}: correct it"
            )
            yield _finding(_USELESS_SILENCE, Found(silence.at or silence.rule, message, fix, silence.line))


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by line."""
    return tuple(sorted(findings, key=lambda finding: (finding.severity.rank, finding.line, finding.code, finding.at)))
