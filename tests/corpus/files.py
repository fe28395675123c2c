"""Where the files of the corpus are, and the template values they are read with."""

from pathlib import Path

from delayctl.cli.inputs import template_values

BROKEN = Path(__file__).parent / "broken"
VALID = Path(__file__).parent / "valid"


def valid_names() -> list[str]:
    """The names of all good files."""
    return sorted(file.stem for file in VALID.glob("*.yaml"))


def broken_names() -> list[str]:
    """The names of all broken files that are kept as text."""
    return sorted(file.stem for file in BROKEN.glob("*.yaml"))


def options_for(folder: Path, name: str) -> list[str]:
    """The options that a file is read with."""
    values = folder / f"{name}.values"
    return ["--values", str(values)] if values.exists() else []


def values_for(folder: Path, name: str) -> dict[str, object]:
    """The template values that a file is read with."""
    return template_values(options_for(folder, name)[1:], [])
