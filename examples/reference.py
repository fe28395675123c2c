"""Writes docs/reference/ anew from the code: `python -m examples.reference`. Commands, the file, and the Python API."""

import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from delayctl.cli.groups import COMMANDS, THEMES
from delayctl.cli.main import cli
from delayctl.cli.options import connection_options

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
MODULES = (
    "delayctl.publishers",
    "delayctl.consumers",
    "delayctl.testing",
    "delayctl.simulator.rabbitmq",
    "delayctl.simulator.rocketmq",
)
_MADE = "<!-- Made from the code by `make reference`; changes belong there. -->"
_DOTTED = re.compile(r"\b(?:[a-z_]\w*\.)+(?=\w)")
_WIDTH = 100
_REFERENCE = "#/$defs/"


def written() -> dict[str, str]:
    """Every page by the name of its file."""
    pages = {"cli.md": _commands(), "file.md": _file(), "python.md": _api()}
    return {name: "\n".join([*lines]).rstrip() + "\n" for name, lines in pages.items()}


def _commands() -> Iterator[str]:
    yield from ("# Commands", "", _MADE, "", "What `delayctl COMMAND --help` says, on one page.", "")
    for theme, names in THEMES.items():
        yield f"- {theme}: {', '.join(f'[{name}](#delayctl-{name})' for name in names)}"
    shared = _shared(connection_options)
    yield from (
        "",
        "## Connecting",
        "",
        "Every command that speaks to a broker takes these; see [connecting](../connecting.md).",
        "",
    )
    yield from _option_table([parameter for parameter in cli.commands["plan"].params if parameter.name in shared])
    for name in COMMANDS:
        yield from _command(name, cli.commands[name], shared)


def _shared(decorate: Callable[[Callable[..., None]], Callable[..., None]]) -> set[str]:
    """The names of options that a decorator adds."""
    return {parameter.name or "" for parameter in click.command()(decorate(lambda: None)).params}


def _command(name: str, command: click.Command, shared: set[str]) -> Iterator[str]:
    context = click.Context(command, info_name=f"delayctl {name}")
    yield from ("", f"## delayctl {name}", "")
    yield from ("```text", " ".join(["delayctl", name, *command.collect_usage_pieces(context)]), "```", "")
    yield from (inspect.cleandoc(command.help or ""), "")
    own = [p for p in command.params if isinstance(p, click.Option) and p.name not in shared and not p.hidden]
    if own:
        yield from _option_table(own)
    if any(parameter.name in shared for parameter in command.params):
        yield from ("", "And how to [connect](#connecting).")
    examples = inspect.cleandoc(command.epilog or "").replace("\b\n", "")
    yield from ("", "```text", examples, "```")


def _option_table(options: list[click.Parameter] | list[click.Option]) -> Iterator[str]:
    yield from ("| option | |", "|---|---|")
    for option in options:
        assert isinstance(option, click.Option)
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        value = (
            f" `{option.make_metavar(click.Context(click.Command('x')))}`"
            if not option.is_flag and not option.count
            else ""
        )
        variable = f" Environment: `{option.envvar}`." if option.envvar else ""
        default = f" Default: `{_default(option)}`." if option.show_default else ""
        yield f"| {names}{value.replace('|', chr(92) + '|')} | {_cell(option.help or '')}{variable}{default} |"


def _default(option: click.Option) -> str:
    if option.is_flag and option.secondary_opts:
        return (option.opts if option.default else option.secondary_opts)[0]
    return str(option.default)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _file() -> Iterator[str]:
    schema = json.loads(files("delayctl.topology").joinpath("schema.json").read_text(encoding="utf-8"))
    yield from (
        "# The file",
        "",
        _MADE,
        "",
        "Every key of `topology.yaml`, from the schema that `delayctl schema` prints for editors.",
        "",
    )
    yield from ("With examples and reasons: [the file](../topology-file.md).", "", "## At the top", "")
    yield from _properties(schema, schema.get("required", ()))
    for name, definition in schema["$defs"].items():
        yield from ("", f"## {name}", "")
        if "description" in definition:
            yield from (definition["description"], "")
        if "properties" in definition:
            yield from _properties(definition, definition.get("required", ()))
        else:
            yield f"A value: {_kind(definition)}."


def _properties(definition: Mapping[str, Any], required: Any) -> Iterator[str]:
    yield from ("| key | value | |", "|---|---|---|")
    for name, value in definition["properties"].items():
        default = f" Default: `{_yaml(value['default'])}`." if "default" in value else ""
        needed = " Needed." if name in required else ""
        yield f"| `{name}` | {_kind(value).replace('|', chr(92) + '|')} | {_cell(value.get('description', ''))}{default}{needed} |"


def _kind(value: Mapping[str, Any]) -> str:
    """What may stand there, in words; definitions are links."""
    if "$ref" in value:
        name = value["$ref"].removeprefix(_REFERENCE)
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{_yaml(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{_yaml(each)}`" for each in value["enum"])
    for several in ("anyOf", "oneOf"):
        if several in value:
            return " or ".join(dict.fromkeys(_kind(each) for each in value[several]))
    return _plain_kind(value)


def _plain_kind(value: Mapping[str, Any]) -> str:
    types = [value["type"]] if isinstance(value.get("type"), str) else [t for t in value.get("type", ()) if t != "null"]
    if types == ["array"]:
        return f"list of {_kind(value['items'])}" if "items" in value else "list"
    if types == ["object"]:
        inner = value.get("additionalProperties")
        return f"names, each with {_kind(inner)}" if isinstance(inner, dict) else "mapping"
    words = {"string": "text", "integer": "whole number", "boolean": "`true` or `false`", "number": "number"}
    return " or ".join(words.get(each, each) for each in types) or ("text" if "pattern" in value else "anything")


def _yaml(value: object) -> str:
    return json.dumps(value) if not isinstance(value, str) else value


def _api() -> Iterator[str]:
    yield from (
        "# Python API",
        "",
        _MADE,
        "",
        "What services import. How it is used: [publishing](../publishing.md), [consuming](../consuming.md),",
    )
    yield from ("[testing a service](../testing.md), [simulators](../simulator.md).",)
    for name in MODULES:
        module = importlib.import_module(name)
        yield from ("", f"## {name}", "", _doc(module))
        for exported in sorted(module.__all__, key=str.lower):
            yield from _exported(exported, getattr(module, exported))


def _exported(name: str, value: object) -> Iterator[str]:
    yield from ("", f"### {name}", "")
    if not inspect.isclass(value) and not inspect.isfunction(value):
        yield f"`{_undotted(repr(value))}`"
        return
    yield from _signed(name, value)
    for method, member in sorted(vars(value).items()) if inspect.isclass(value) else ():
        if not method.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod)):
            yield from ("", *_signed(f"{name}.{method}", getattr(value, method)))
        elif isinstance(member, property) and not method.startswith("_"):
            yield from ("", f"`{name}.{method}`: {_doc(member)}")


def _signed(name: str, value: Callable[..., object] | type) -> Iterator[str]:
    try:
        signature = inspect.signature(value)
    except ValueError:  # Made by Python itself.
        yield _doc(value)
        return
    parts = [_undotted(str(parameter)) for parameter in signature.parameters.values() if parameter.name != "self"]
    kinds = [parameter.kind for parameter in signature.parameters.values() if parameter.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    answer = signature.return_annotation
    is_said = answer is not inspect.Signature.empty and not inspect.isclass(value)
    back = f" -> {_undotted(inspect.formatannotation(answer))}" if is_said else ""
    line = f"{name}({', '.join(parts)}){back}"
    lines = [line] if len(line) <= _WIDTH else [f"{name}(", *(f"    {part}," for part in parts), f"){back}"]
    yield from ("```text", *lines, "```", "", _doc(value))


def _undotted(text: str) -> str:
    """Without the modules that names come from, and without the addresses of objects."""
    return re.sub(r"<(?:function )?([\w.]+)[^<>]*>", r"\1", _DOTTED.sub("", text))


def _doc(value: object) -> str:
    """A docstring as a page shows it: what is typed into Python is code."""
    paragraphs = inspect.cleandoc(getattr(value, "__doc__", None) or "").split("\n\n")
    return "\n\n".join(f"```pycon\n{each}\n```" if each.startswith(">>>") else each for each in paragraphs)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
