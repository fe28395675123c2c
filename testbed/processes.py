"""Processes that end with the block that started them, or with this program, whichever is first."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import keeper


@dataclass(frozen=True)
class Command:
    """One process to run: its arguments, its whole environment, and the file that its output goes to."""

    argv: Sequence[str]
    env: Mapping[str, str]
    output: Path


@dataclass(frozen=True)
class Kept:
    """Processes under a keeper."""

    folder: Path
    outputs: tuple[Path, ...]
    keeper: subprocess.Popen[bytes]

    def end(self) -> str | None:
        """Say which of the processes ended by itself, or None while all run."""
        path = self.folder / keeper.EXITED
        if path.exists():
            return path.read_text()
        code = self.keeper.poll()
        return None if code is None else f"the keeper of {self.folder.name} ended with exit code {code}"

    def tail(self, lines: int = 12) -> str:
        """Return the last lines of everything that the processes wrote."""
        texts = [path.read_text(errors="replace") for path in self.outputs if path.is_file()]
        return "\n".join("\n".join(texts).splitlines()[-lines:])


@contextmanager
def kept(
    commands: Sequence[Command], folder: Path, *, grace: float = 20.0, remove: Sequence[Path] = ()
) -> Iterator[Kept]:
    """Run the commands in order until the block ends; then stop them in reverse order and remove the folders."""
    spec = {
        "commands": [{"argv": list(c.argv), "env": dict(c.env), "output": str(c.output)} for c in commands],
        "grace": grace,
        "remove": [str(path) for path in remove],
    }
    (folder / keeper.SPEC).write_text(json.dumps(spec))
    # In a session of its own, so that Ctrl-C in a terminal reaches the owner only, which then ends in order.
    process = subprocess.Popen(
        [sys.executable, "-I", keeper.__file__, str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield Kept(folder, tuple(command.output for command in commands), process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
