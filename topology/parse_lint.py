"""The `lint` section: findings that the author knows of, and what the rules can't see for themselves."""

import re

from delayctl.topology.reader import Reader, describe, is_nothing
from delayctl.topology.size import parse_size
from delayctl.topology.source import MapNode, Node, ScalarNode
from delayctl.topology.spec import Silence

LINT_KEYS = ("ignore", "memory")
SILENCE_KEYS = ("rule", "at", "reason")
_RULE = re.compile("D[0-9]{3}")


def read_lint(reader: Reader, node: Node | None) -> tuple[tuple[Silence, ...], int | None]:
    """Read what is ignored, and how much memory the broker has."""
    fields = reader.fields(node, "lint", LINT_KEYS) if node else {}
    ignored = fields.get("ignore")
    items = reader.items(ignored, "lint.ignore") if ignored and not is_nothing(ignored) else []
    silences = dict.fromkeys(silence for item in items if (silence := _read_silence(reader, item)))
    return tuple(silences), _read_memory(reader, fields["memory"]) if "memory" in fields else None


def _read_silence(reader: Reader, node: Node) -> Silence | None:
    if not isinstance(node, MapNode):
        message = f"lint.ignore must list mappings, not {describe(node)}"
        reader.problem(node, message, fix="write {rule: D101, reason: why it is fine}")
        return None
    fields = reader.fields(node, "lint.ignore", SILENCE_KEYS)
    for needed, fix in (("rule", "add rule: D101, or whichever is meant"), ("reason", "add reason: why it is fine")):
        if needed not in fields:
            reader.problem(node, f"lint.ignore has no '{needed}'", fix=fix)
    rule = _read_rule(reader, fields["rule"]) if "rule" in fields else None
    reason = _read_reason(reader, fields["reason"]) if "reason" in fields else None
    at = reader.label(fields["at"], "at") if "at" in fields else None
    return Silence(rule, reason, at, reader.line_of(node)) if rule and reason else None


def _read_rule(reader: Reader, node: Node) -> str | None:
    if isinstance(node, ScalarNode) and _RULE.fullmatch(node.text):
        return node.text
    message = f"rule must be the code of a rule, not {describe(node)}"
    reader.problem(node, message, fix="write it as validate shows it: a D and three digits, such as D101")
    return None


def _read_reason(reader: Reader, node: Node) -> str | None:
    """A sentence or several; how they were broken into lines says nothing."""
    value = node.value if isinstance(node, ScalarNode) else None
    reason = " ".join(value.split()) if isinstance(value, str) else ""
    if not reason:
        message = f"reason must be a text, not {describe(node)}"
        reader.problem(node, message, fix="say why this is fine here, so that the next reader knows")
    return reason or None


def _read_memory(reader: Reader, node: Node) -> int | None:
    try:
        return parse_size(node.text if isinstance(node, ScalarNode) else "")
    except ValueError:
        message = f"memory must be a size, not {describe(node)}"
        reader.problem(node, message, fix="write it as 4GiB, 512MB or a number of bytes")
        return None
