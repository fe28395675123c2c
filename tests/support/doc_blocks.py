"""The code blocks of the documentation, and how each language is held to what is true."""

import ast
import configparser
import importlib
import inspect
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import hcl2
import yaml
from delayctl.cli.main import cli
from delayctl.consumers import DelayConsumer, Message
from delayctl.publishers import DelayPublisher
from delayctl.testing import SimulatedBroker
from delayctl.topology.expand import expand
from delayctl.topology.parse import read_spec

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("compose/*.md")])
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(delayctl [^`\n]*)`")
_TOP = {"version", "vhost", "prefix", "delay", "exchanges", "queues", "routes", "retry", "permissions", "lint"}
# What a part of a file may refer to, and what templates may be given.
_AROUND = {
    "version": "1",
    "exchanges": "{orders.exchange: {}}",
    "queues": "{orders.timeout.queue: {}, reminders.queue: {}}",
}
_VALUES: dict[str, object] = {"countries": ["de", "fr"]}
# What examples call things whose kind is plain from the page.
_KINDS: dict[str, type] = {
    "publisher": DelayPublisher,
    "consumer": DelayConsumer,
    "delay_broker": SimulatedBroker,
    "broker": SimulatedBroker,
    "message": Message,
}


@dataclass(frozen=True)
class Block:
    """A block of code on a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def blocks() -> tuple[Block, ...]:
    """All of them."""
    return tuple(block for page in PAGES for block in _blocks_of(page))


def _blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        code = re.sub(rf"^{found[1]}", "", found[3], flags=re.MULTILINE)
        yield Block(page, text[: found.start()].count("\n") + 1, found[2], code)


def check_yaml(block: Block) -> None:
    """A topology, whole or in part, can be used; anything else can be read."""
    if is_template(block):
        read_spec(block.text, _VALUES, file=str(block))
        return
    keys = top_keys(block)
    if is_topology(block):
        missing = _AROUND.keys() - keys if "version" not in keys else ()
        around = "".join(f"{key}: {_AROUND[key]}\n" for key in sorted(missing))
        expand(read_spec(block.text + around, {}, file=str(block)))


def is_topology(block: Block) -> bool:
    """Whether it is one, or a part of one."""
    return is_template(block) or (bool(keys := top_keys(block)) and keys <= _TOP)


def is_template(block: Block) -> bool:
    """Whether it has to be filled in before it is YAML."""
    return "{%" in block.text or "{{" in block.text


def top_keys(block: Block) -> set[str]:
    """The names that a document begins its parts with."""
    documents = [*yaml.safe_load_all(block.text)]
    return {*documents[0]} if len(documents) == 1 and isinstance(documents[0], dict) else set()


def check_python(block: Block) -> None:
    """It compiles, what it imports of ours is there, and our functions take what they are given."""
    tree = ast.parse(block.text)
    ours = dict(_imports(tree))
    kinds = {**_KINDS, **dict(_made(tree, ours))}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if target := _target(call.func, ours, kinds):
            inspect.signature(target).bind_partial(**{each.arg: None for each in call.keywords if each.arg})
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and (kind := kinds.get(node.value.id)):
            known = {*dir(kind), *inspect.signature(kind).parameters, *_set_in(kind)}
            assert node.attr in known, f"{kind.__name__} has no {node.attr}"


def _imports(tree: ast.Module) -> Iterator[tuple[str, Callable[..., object]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("delayctl"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, getattr(module, alias.name)


def _made(tree: ast.Module, ours: dict[str, Callable[..., object]]) -> Iterator[tuple[str, type | None]]:
    """Of which kind the things are that a program makes itself; None where that can't be told."""
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.With):
            pairs = [(item.optional_vars, item.context_expr) for item in node.items]
        elif isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                made = (
                    ours.get(value.func.id)
                    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
                    else None
                )
                yield target.id, made if inspect.isclass(made) else None


def _set_in(kind: type) -> set[str]:
    """The attributes that a class gives to itself when it is made."""
    return set(re.findall(r"self\.(\w+)\b.* = ", inspect.getsource(kind)))


def _target(
    called: ast.expr, ours: dict[str, Callable[..., object]], kinds: Mapping[str, type | None]
) -> Callable[..., object] | None:
    """The function of ours that is called, where it can be told without running anything."""
    if isinstance(called, ast.Name):
        found = ours.get(called.id)
        return found if inspect.isfunction(found) or inspect.isclass(found) else None
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        found = getattr(kinds.get(called.value.id), called.attr, None)
        return found if inspect.isfunction(found) else None
    return None


def check_shell(block: Block) -> None:
    """A shell could read it, and it names commands and options that there are."""
    ran = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    check_commands(block)


def check_commands(block: Block) -> None:
    """Every command line of ours in it can be read: behind a prompt where there are prompts, else at the left edge."""
    lines = block.text.replace("\\\n", " ").splitlines()
    typed = [line[2:] for line in lines if line.startswith("$ ")] or [
        each for each in lines if each.startswith("delayctl ")
    ]
    for line in typed:
        for command in commands_in(line):
            check_command(command)


def commands_in(line: str) -> Iterator[list[str]]:
    """Our commands in a line of shell: what stands before, between and behind pipes and the like."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for token in [*lexer, ";"]:
        if set(token) <= set("|;&<>()"):
            if words[:1] == ["delayctl"]:
                yield words[1:]
            words = []
        else:
            words.append(token)


def check_command(words: list[str]) -> None:
    """Click takes it; what is left out with an ellipsis is not asked for."""
    if not words or words[0].startswith("-"):
        return
    command = cli.commands.get(words[0])
    assert command is not None, f"there is no delayctl {words[0]}"
    given = [word for word in words[1:] if word not in ("…", "...")]
    if {"--help", "-h"} & {*given}:
        return
    try:
        with command.make_context(words[0], given):
            pass
    except click.MissingParameter:
        assert len(given) < len(words) - 1, f"incomplete: delayctl {' '.join(words)}"


def inline_commands() -> list[tuple[Path, str]]:
    """What pages say between backticks that begins with our name."""
    return [
        (page, code) for page in PAGES for code in _INLINE.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))
    ]


def check_inline(code: str) -> None:
    """The command is there, and so is every option that is named; values may be left out."""
    words = re.sub(r"[|,;].*|…", " ", code).split()[1:]
    if not words or not re.fullmatch(r"[a-z-]+", words[0]) or words[0].startswith("--"):
        return
    command = cli.commands.get(words[0])
    assert command is not None, f"there is no delayctl {words[0]}"
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = {word.partition("=")[0] for word in words if word.startswith("--")} - known
    assert not unknown, f"delayctl {words[0]} has no {', '.join(sorted(unknown))}"


def check_hcl(block: Block) -> None:
    """Terraform could read it."""
    assert hcl2.loads(block.text)


def check_ini(block: Block) -> None:
    """It is a file of settings."""
    parser = configparser.ConfigParser()
    parser.read_string(block.text)
    assert parser.sections()


def check_java(block: Block) -> None:
    """No compiler is at hand: every brace that is opened is closed, and every statement ends."""
    assert block.text.count("{") == block.text.count("}")
    assert block.text.count("(") == block.text.count(")")


# One for every language that the pages use: a block of another one fails.
CHECKS: dict[str, Callable[[Block], None]] = {
    "": check_commands,
    "text": check_commands,
    "sh": check_shell,
    "yaml": check_yaml,
    "python": check_python,
    "hcl": check_hcl,
    "ini": check_ini,
    "java": check_java,
}
