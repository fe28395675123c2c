"""Prometheus' promtool, which checks rules and plays them: the installed one, else Debian's, unpacked into the cache."""

import shutil
from pathlib import Path

from testbed import apt

_PROGRAM = Path("usr/bin/promtool")


def find_promtool() -> Path:
    """Return a promtool; Debian has it in the package of Prometheus itself, a download of 19 MB."""
    installed = shutil.which("promtool")
    return Path(installed) if installed else fetched_promtool()


def fetched_promtool() -> Path:
    """Return Debian's promtool from the cache folder, fetched there if it is not yet."""
    return apt.unpacked("promtool", ["prometheus"], finish=keep_promtool) / _PROGRAM


def keep_promtool(root: Path) -> None:
    """Remove all but promtool from an unpacked tree: the server and its pages take six times as much."""
    program = (root / _PROGRAM).rename(root / _PROGRAM.name)
    for other in root.iterdir():
        if other != program:
            shutil.rmtree(other)
    (root / _PROGRAM).parent.mkdir(parents=True)
    program.rename(root / _PROGRAM)
