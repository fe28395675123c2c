"""The terminal of `delayctl watch`: a screen of its own that is given back as it was, and the keys."""

import os
import select
import signal
import sys
import termios
import time
import tty
from types import FrameType, TracebackType

from delayctl.cli.watch_scene import Scene
from delayctl.cli.watch_view import frame, speakable
from rich.console import Console, ConsoleDimensions
from rich.live import Live
from rich.text import Text

_IDLE_S = 0.2  # So soon a new size of the terminal is noticed.


class Screen:
    """Draws scenes, and hears keys where there is somebody to press them; `with` gives the terminal back."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._drawn: tuple[Scene, ConsoleDimensions, int] | None = None
        self._shown: tuple[Text, ConsoleDimensions] | None = None
        self.has_keys = sys.stdin.isatty()

    def __enter__(self) -> "Screen":
        self._terminated = signal.signal(signal.SIGTERM, _interrupt)
        if self.has_keys:
            self._before = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            quiet = termios.tcgetattr(sys.stdin)
            quiet[6][termios.VSUSP] = b"\0"  # Ctrl-Z would leave the other screen behind.
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, quiet)
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self._live.stop()
        finally:
            if self.has_keys:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
            signal.signal(signal.SIGTERM, self._terminated)

    def draw(self, scene: Scene, now_ms: int) -> None:
        """Show a scene, unless that is what is shown already: over a slow line every byte counts."""
        size = self._console.size
        if self._drawn == (scene, size, now_ms // 1000):
            return
        self._drawn = (scene, size, now_ms // 1000)
        text = speakable(frame(scene, now_ms=now_ms, width=size.width, height=size.height), self._console.encoding)
        if self._shown != (text, size):
            self._shown = (text, size)
            self._live.update(text, refresh=True)

    def key(self) -> str:
        """A key that was pressed, or nothing after a moment."""
        if not self.has_keys:
            time.sleep(_IDLE_S)
            return ""
        if not select.select([sys.stdin], [], [], _IDLE_S)[0]:
            return ""
        # What a key sends beyond a letter (arrows, the mouse) comes in one piece, and means nothing here.
        pressed = os.read(sys.stdin.fileno(), 64).decode(errors="replace")
        self.has_keys = bool(pressed)  # Nothing to read: the terminal has hung up.
        return pressed if len(pressed) == 1 else ""


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt
