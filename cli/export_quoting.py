"""Values as other languages write them, so that no name can break out of its quotes. Pure."""

import hashlib
import json
import re
from collections.abc import Mapping

MAX_DNS_NAME = 253
_DIGEST = 10
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HCL_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENDS_IN_DIGEST = re.compile(rf"[-_][0-9a-f]{{{_DIGEST}}}$")  # Such a name could be taken for one of ours.
_TEMPLATE = re.compile(r"[$%](?=\{)")
_ESCAPED = {'"': '\\"', "\\": "\\\\"}


def double_quoted(text: str) -> str:
    """A text in double quotes, as YAML reads it: what can't be seen is written as its code."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def yaml_value(value: object) -> str:
    """A value on one line of YAML; texts are always quoted, since `on` and `1_000` are no texts without."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{double_quoted(str(name))}: {yaml_value(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(yaml_value, value)) + "]"
    return double_quoted(value) if isinstance(value, str) else json.dumps(value)


def hcl_value(value: object) -> str:
    """A value as Terraform writes it; `${` and `%{` would begin a template."""
    if isinstance(value, Mapping):
        parts = ", ".join(f"{hcl_value(str(name))} = {hcl_value(part)}" for name, part in value.items())
        return f"{{ {parts} }}" if parts else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(hcl_value, value)) + "]"
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda found: f"\\u{ord(found[0]):04x}", double_quoted(value))
    return json.dumps(value)


def compose_text(text: str) -> str:
    """A text that docker compose takes as it is: a lone `$` would begin a variable."""
    return text.replace("$", "$$")


def dns_name(text: str, *also: str) -> str:
    """A name that Kubernetes takes: the text itself where it is one, else what is left of it and a digest.

    The digest is of all that is given, and tells apart what would have the same name without it.
    """
    if not also and len(text) <= MAX_DNS_NAME and _DNS_NAME.fullmatch(text) and not _ENDS_IN_DIGEST.search(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "-", text.lower())[: MAX_DNS_NAME - _DIGEST - 1].strip("-")
    return "-".join(filter(None, (readable, digest(text, *also))))


def hcl_label(text: str, *also: str) -> str:
    """A label that Terraform takes, made as `dns_name` makes its names; dots become underscores."""
    label = text.replace(".", "_")
    if not also and "_" not in text and _HCL_LABEL.fullmatch(label) and not _ENDS_IN_DIGEST.search(label):
        return label
    readable = re.sub(r"[^A-Za-z0-9]+", "_", text)[:100].strip("_")
    return "_".join(filter(None, ("" if readable[:1].isalpha() else "n", readable, digest(text, *also))))


def digest(*parts: str) -> str:
    """A few letters that tell these texts from others."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGEST]
