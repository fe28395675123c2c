"""Runs the command line in this process, or in one of its own."""

import io
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from delayctl.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What a command answered."""

    code: int
    out: str
    err: str


def delayctl(*arguments: str) -> Ran:
    """Run a command and take its answer."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    assert "Traceback" not in err.getvalue()
    return Ran(code, out.getvalue(), err.getvalue())


def delayctl_process(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own, so that it can be killed."""
    # A job in the background inherits that Ctrl-C is ignored; the command under test must not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen([sys.executable, "-m", "delayctl", *arguments], text=True, **options)
    finally:
        signal.signal(signal.SIGINT, before)
