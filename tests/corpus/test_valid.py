"""Every good file is accepted, and expands to exactly what is written down beside it."""

import os
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
import yaml
from delayctl.cli.inputs import read_topology_file
from delayctl.cli.main import main
from delayctl.topology import source
from delayctl.topology.duration import Duration
from delayctl.topology.expand import expand
from delayctl.topology.model import Binding, Topology
from delayctl.topology.parse import read_spec
from delayctl.topology.write import write_spec

from tests.corpus.files import VALID, options_for, valid_names, values_for


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(VALID)


@pytest.mark.parametrize("name", valid_names())
def test_valid_file_is_accepted(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line says so, and nothing else."""
    code = main(["validate", f"{name}.yaml", *options_for(VALID, name)])

    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert out.startswith(f"{name}.yaml is valid: ")


@pytest.mark.parametrize("name", valid_names())
def test_valid_file_expands_to_what_is_expected(name: str) -> None:
    """Every object that a file means is compared, with all its fields."""
    expanded = topology_text(expand(read_topology_file(f"{name}.yaml", values_for(VALID, name))))
    golden = Path(f"{name}.expected")
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(expanded, encoding="utf-8")

    assert expanded == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", valid_names())
def test_valid_file_survives_writing(name: str) -> None:
    """What is written from a file's Spec is read as the same Spec."""
    spec = read_topology_file(f"{name}.yaml", values_for(VALID, name))

    assert read_spec(write_spec(spec), {}, file="written.yaml") == spec


@pytest.mark.parametrize("name", valid_names())
def test_valid_file_needs_no_compiled_yaml(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML reads the same without libyaml."""
    values = values_for(VALID, name)
    spec = read_topology_file(f"{name}.yaml", values)
    monkeypatch.setattr(source, "_LOADER", yaml.SafeLoader)

    assert read_topology_file(f"{name}.yaml", values) == spec


def topology_text(topology: Topology) -> str:
    """One object a line, with every field that is not at its default."""
    head = (f"prefix {topology.prefix!r}", f"exit {topology.exit!r}")
    return "\n".join([*head, *map(shown, (*topology.levels, *topology, *topology.existing))]) + "\n"


def shown(value: object) -> str:
    """A value as Python would make it, defaults left out."""
    if isinstance(value, Duration):
        return str(value)
    if isinstance(value, Binding):
        defaults = {name: Binding._field_defaults.get(name) for name in Binding._fields}
    elif is_dataclass(value):
        defaults = {field.name: field.default for field in fields(value)}
    else:
        return repr(value)
    written = (f"{name}={shown(part)}" for name in defaults if (part := getattr(value, name)) != defaults[name])
    return f"{type(value).__name__}({', '.join(written)})"
