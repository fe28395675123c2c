"""What PyYAML says about broken YAML, in words that name the place to mend."""

import re

import yaml
from delayctl.topology.errors import Problem
from delayctl.topology.lines import LINE_BREAK
from delayctl.topology.render import Rendered
from delayctl.topology.wording import quoted

_INVISIBLE = ("\x85", "\u2028", "\u2029")
_GLUED = re.compile(r"(?:^ *|[{,] *|- +)([\w.-]+:)(?=[^\s:/])|^ *(-)(?=[^\s-])")  # `name:value` or `-value`.
_ANYWHERE = "check quotes, brackets and indentation at and above this line"


def explain(error: yaml.MarkedYAMLError, rendered: Rendered) -> Problem:
    """A syntax error as a problem at the line that wants mending, which is not always where it was noticed."""
    noticed = error.problem_mark.line + 1 if error.problem_mark else 1
    begun = error.context_mark.line + 1 if error.context_mark else noticed
    line, message, fix = _words(error, rendered, noticed, begun)
    return Problem(f"not YAML: {message}", rendered.location(line), fix)


def _words(error: yaml.MarkedYAMLError, rendered: Rendered, noticed: int, begun: int) -> tuple[int, str, str]:
    context, problem = error.context or "", error.problem or ""
    lines = [*LINE_BREAK.split(rendered.text), ""]
    here = lines[min(noticed, len(lines)) - 1]
    breaks = LINE_BREAK.findall(rendered.text)
    if 2 <= noticed <= len(breaks) + 1 and breaks[noticed - 2] in _INVISIBLE:
        return noticed, f"the invisible character U+{ord(breaks[noticed - 2]):04X} ends the line", "remove it"
    if here.lstrip(" ").startswith("\t"):
        return noticed, "a tab stands where only spaces may", "indent with spaces"
    if "cannot start any token" in problem:
        char = here[error.problem_mark.column :][:1] if error.problem_mark else ""
        return noticed, f"a value can't begin with {quoted(char)}", "put it in quotes"
    if "scanning an alias" in context or "scanning an anchor" in context:
        char = "*" if "alias" in context else "&"
        return begun, f"a text that begins with {char} needs quotes", "put it in quotes"
    if "quoted scalar" in context and "escape" in problem:
        return noticed, "an unknown escape stands in a quoted text", "write \\\\ for a backslash, or use single quotes"
    if "quoted scalar" in context:
        return begun, "the quote that opens here is not closed", "close it with the same kind of quote"
    if "flow sequence" in context or "flow mapping" in context:
        opened, closed = ("[", "]") if "sequence" in context else ("{", "}")
        there = rendered.location(noticed)
        before = f" before line {there.line}" if there != rendered.location(begun) else ""
        message = f"the '{opened}' that opens here is not closed, or a comma is missing{before}"
        return begun, message, f"close it with '{closed}', or separate the values with commas"
    if any(each in context + problem for each in ("simple key", "mapping values", "unexpected ':'")):
        for number in (begun, begun - 1):
            if glued := _GLUED.search(lines[number - 1]):
                sign = (glued[1] or glued[2])[-1]
                fix = "write '- value'" if sign == "-" else "write 'name: value'"
                return number, f"a space is missing behind the '{sign}' of {quoted(lines[number - 1].strip())}", fix
    if "simple key" in context:
        return begun, f"{quoted(lines[begun - 1].strip())} has no ':'", "write 'name: value', or '- value' in a list"
    if "block mapping" in context or "block collection" in context:
        what = "mapping" if "mapping" in context else "list"
        message = f"the line does not fit into the {what} that begins at line {rendered.location(begun).line}"
        return noticed, message, "check its indentation, and the quotes and brackets above it"
    if "mapping values are not allowed" in problem:
        fix = "check the indentation, or put a text that holds ': ' in quotes"
        return noticed, "a ':' stands where no value can follow", fix
    if "incompatible YAML" in problem or "directive" in context:
        return noticed, "the line that begins with % says nothing we know", "remove it"
    if "<document start>" in problem:
        return noticed, "text follows where the document has ended", "check the indentation, and remove '...' lines"
    return noticed, " ".join(part for part in (context, problem) if part), _ANYWHERE
