"""A terminal in a test's hands: a program runs in it, keys are pressed, and what is on the screen can be read."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from types import TracebackType

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_HOME = "\x1b[H"
_DEADLINE_S = 60
# The terminal has to be the program's own, so that Ctrl-C reaches it; and what runs in the background ignores that.
_OWNING = """
import fcntl, runpy, signal, termios
signal.signal(signal.SIGINT, signal.default_int_handler)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
runpy.run_module("delayctl", run_name="__main__", alter_sys=True)
"""


class Terminal:
    """Runs delayctl in a terminal of a size; `with` ends it."""

    def __init__(self, *arguments: str, columns: int = 100, lines: int = 30, **environment: str) -> None:
        self._master, self._slave = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(self._slave)
        self._output = ""
        # A size that is given by the environment would be in force whatever the terminal's is.
        inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OWNING, *arguments],
            stdin=self._slave,
            stdout=self._slave,
            stderr=self._slave,
            env={**inherited, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)
        os.close(self._slave)

    @property
    def pid(self) -> int:
        """Of the program."""
        return self._process.pid

    @property
    def output(self) -> str:
        """All that was written, escape codes included."""
        return self._output

    @property
    def settings(self) -> object:
        """How the terminal is set."""
        return termios.tcgetattr(self._slave)

    def screen(self) -> list[str]:
        """The lines of the last frame that was drawn from the upper left corner."""
        frame = self._output.rpartition(_HOME)[2]
        return [line.rstrip() for line in _ESCAPE.sub("", frame).replace("\r", "").split("\n")]

    def resize(self, columns: int, lines: int) -> None:
        """Another size, as when somebody pulls at the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())

    def until_shown(self, *texts: str) -> list[str]:
        """Wait until all texts are on the screen."""
        end = time.monotonic() + _DEADLINE_S
        while True:
            self._read(0.1)
            shown = self.screen()
            if all(any(text in line for line in shown) for text in texts):
                return shown
            assert self._process.poll() is None, f"it has ended:\n{self._output}"
            assert time.monotonic() < end, "\n".join([f"not shown: {texts}", *shown])

    def code(self) -> int:
        """Wait until the program has ended."""
        end = time.monotonic() + _DEADLINE_S
        while self._process.poll() is None and time.monotonic() < end:
            self._read(0.1)
        while self._read(0.1):
            pass
        return self._process.wait(1)

    def _read(self, patience_s: float) -> bool:
        if not select.select([self._master], [], [], patience_s)[0]:
            return False
        self._output += os.read(self._master, 65536).decode(errors="replace")
        return True
