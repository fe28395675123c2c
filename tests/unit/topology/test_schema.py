"""The JSON Schema of topology.yaml says what the parser says."""

import json
from importlib.resources import files
from typing import Any

import pytest
from delayctl.cli.inputs import render_file
from delayctl.topology import parse
from delayctl.topology.parse_ladder import LADDER_KEYS
from delayctl.topology.parse_levels import PROFILES
from delayctl.topology.source import load, plain
from jsonschema import Draft202012Validator

from tests.corpus.files import BROKEN, VALID, broken_names, valid_names, values_for

SCHEMA: dict[str, Any] = json.loads(files("delayctl.topology").joinpath("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
STRUCTURAL = tuple(name for name in broken_names() if name.startswith(("type_", "key_in_", "number_", "existing_")))


def test_schema_is_one() -> None:
    """It is valid under the draft that it names."""
    Draft202012Validator.check_schema(SCHEMA)

    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("name", valid_names())
def test_valid_file_fits(name: str) -> None:
    """Every good file of the corpus is good to an editor as well."""
    rendered = render_file(str(VALID / f"{name}.yaml"), values_for(VALID, name))

    assert [error.message for error in VALIDATOR.iter_errors(plain(load(rendered)))] == []


@pytest.mark.parametrize("name", STRUCTURAL)
def test_file_of_the_wrong_shape_does_not_fit(name: str) -> None:
    """What the parser refuses for its shape, an editor underlines."""
    rendered = render_file(str(BROKEN / f"{name}.yaml"), {})

    assert not VALIDATOR.is_valid(plain(load(rendered)))


@pytest.mark.parametrize(
    ("definition", "keys"),
    [
        (None, parse.FILE_KEYS),
        ("delay", parse.DELAY_KEYS),
        ("wait", parse.WAIT_KEYS),
        ("level", parse.LEVEL_KEYS),
        ("ladder", LADDER_KEYS),
        ("exchange", parse.EXCHANGE_KEYS),
        ("queue", parse.QUEUE_KEYS),
        ("route", parse.ROUTE_KEYS),
        ("target", parse.TARGET_KEYS),
        ("retry", parse.RETRY_KEYS),
        ("grant", parse.GRANT_KEYS),
        ("lint", parse.LINT_KEYS),
        ("silence", parse.SILENCE_KEYS),
    ],
)
def test_keys_are_those_of_the_parser(definition: str | None, keys: tuple[str, ...]) -> None:
    """Neither can learn a key without the other."""
    described = SCHEMA["$defs"][definition] if definition else SCHEMA

    assert tuple(described["properties"]) == keys
    assert described["additionalProperties"] is False


@pytest.mark.parametrize("definition", ["wait", "level", "ladder"])
def test_profiles_are_those_of_the_parser(definition: str) -> None:
    """Neither can learn a profile without the other."""
    assert tuple(SCHEMA["$defs"][definition]["properties"]["profile"]["enum"]) == PROFILES


def test_every_key_is_described() -> None:
    """An editor has something to show wherever the cursor is."""
    definitions = {"": SCHEMA, **SCHEMA["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, definition in definitions.items()
        for key, value in definition.get("properties", {}).items()
        if "description" not in value
        and "description" not in definitions.get(value.get("$ref", "").rpartition("/")[2], {})
    ]

    assert silent == []
