"""The command that shows a topology live."""

import os
import shutil
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.options import (
    connection_options,
    duration_value,
    template_options,
    topology_argument,
)
from delayctl.cli.verify_views import Report
from delayctl.cli.watch_look import Looker, now_ms
from delayctl.cli.watch_rounds import Rounds
from delayctl.cli.watch_scene import Scene, Sight, Verified
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.topology.wording import STDIN

_LEAST = Duration(500)
_PLAIN_WIDTH = 100
_TICK_S = 0.2


def _interval(context: click.Context, parameter: click.Parameter, text: str | None) -> Duration | None:
    every = None if text is None else duration_value(context, parameter, text)
    if every is not None and every < _LEAST:
        raise click.BadParameter(f"{text} is too often: {_LEAST} or more", param=parameter)
    return every


@click.command(
    short_help="Show live what waits, moves, drifts and changes.",
    epilog="""\b
Examples:
  delayctl watch topology.yaml
  delayctl watch topology.yaml --every 5s --verify-every 10m    # with canaries, which tell how late messages come
  delayctl watch topology.yaml --once                           # one frame
  delayctl watch topology.yaml --every 1m >> delays.log         # plain text where there is no terminal

\b
Keys: q ends it, p pauses. NO_COLOR takes the colours away.
""",
)
@topology_argument
@click.option(
    "--every", default="2s", show_default=True, metavar="DURATION", callback=_interval, help="How often to look."
)
@click.option("--once", is_flag=True, help="Print one frame, and end.")
@click.option(
    "--verify-every",
    metavar="DURATION",
    callback=_interval,
    help="Also send canaries as verify does, so often, and show how late they come.",
)
@click.option(
    "--verify-up-to",
    default="1m",
    show_default=True,
    metavar="DURATION",
    callback=duration_value,
    help="Send canaries into levels of up to this.",
)
@template_options
@connection_options
def watch(topology: str, *, every: Duration, once: bool, verify_every: Duration | None, **options: Any) -> int:
    """Show TOPOLOGY on the broker as it is, again and again: what waits, comes and goes, is early, parked, or differs.

    A broker that goes away is waited for, with its last figures on the screen. A file that changes is read again.
    """
    if topology == STDIN and not once:
        what = "a watch takes keys from stdin and reads a topology again that changes: it can't come from there"
        raise BadOption(what, fix="name a file")
    _require_rich()
    up_to = options.pop("verify_up_to")
    looker = Looker(topology, options)
    # What is wrong from the beginning is an error as ever; only later is it waited for.
    sight = looker.look()
    scene = Scene(topology, every, sight, verify_every=verify_every).after(sight)
    if once:
        _print(replace(scene, verify_every=None))
        return exit_codes.DONE
    try:
        with ExitStack() as stack:
            looks = stack.enter_context(Rounds(looker.look, every.ms / 1000, is_rested=False))
            rounds = Watching(scene, looks, _canaries(looker, verify_every, up_to, stack))
            (_on_screen if _has_screen() else _as_text)(rounds, stack)
    except KeyboardInterrupt:  # How a watch ends.
        pass
    return exit_codes.DONE


def _require_rich() -> None:
    try:
        import rich  # noqa: F401, PLC0415 (needed for this alone)
    except ImportError as error:
        fix = "pip install 'delayctl[watch]', or look once: delayctl status"
        raise DelayctlError("rich, which draws the live view, is not installed", fix=fix) from error


class Watching:
    """A scene, and the rounds that it changes by."""

    def __init__(self, scene: Scene, looks: Rounds[Sight], canaries: Rounds[Report] | None) -> None:
        self.scene = scene
        self._looks = looks
        self._canaries = canaries

    def catch_up(self, patience_s: float = 0) -> bool:
        """Take in what has come; says whether there was another look."""
        found = self._looks.result(patience_s)
        if isinstance(found, DelayctlError):
            self.scene = self.scene.without(found.what, found.fix, now_ms())
        elif isinstance(found, Exception):
            raise found
        elif found is not None:
            self.scene = self.scene.after(found)
        self._hear(self._canaries.result() if self._canaries else None)
        return found is not None

    def _hear(self, found: Report | Exception | None) -> None:
        if isinstance(found, DelayctlError):
            self.scene = replace(self.scene, verified=Verified(now_ms(), None, found.what))
        elif isinstance(found, Exception):
            raise found
        elif found is not None:
            self.scene = replace(self.scene, verified=Verified(now_ms(), found))


class _Over(Exception):
    """Nobody waits for canaries any more."""


def _canaries(looker: Looker, every: Duration | None, up_to: Duration, stack: ExitStack) -> Rounds[Report] | None:
    """Canaries again and again; those that are on their way at the end are given up, and caught all the same."""
    if every is None:
        return None

    def go_on(*_: float) -> None:
        if rounds.is_over:
            raise _Over

    rounds = Rounds(lambda: looker.verify(up_to, go_on), every.ms / 1000)
    return stack.enter_context(rounds)


def _has_screen() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def _on_screen(watching: Watching, stack: ExitStack) -> None:
    """Draw until somebody has seen enough."""
    from delayctl.cli.watch_screen import Screen  # noqa: PLC0415 (needs a terminal, and rich)

    screen, held = stack.enter_context(Screen()), None
    while True:
        watching.catch_up()
        shown = held or watching.scene
        screen.draw(replace(shown, has_keys=screen.has_keys, is_paused=held is not None), now_ms())
        match screen.key():
            case "q":
                return
            case "p":
                held = watching.scene if held is None else None


def _as_text(watching: Watching, stack: ExitStack) -> None:
    """Print a frame after every look, for files, pipes and terminals that know no other way."""
    stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.default_int_handler))
    _print(watching.scene)
    while True:
        if watching.catch_up(_TICK_S):
            click.echo()
            _print(watching.scene)


def _print(scene: Scene) -> None:
    from delayctl.cli.watch_view import frame, plain  # noqa: PLC0415 (rich need not be there)

    width = shutil.get_terminal_size((_PLAIN_WIDTH, 0)).columns
    click.echo(plain(frame(scene, now_ms=now_ms(), width=width), sys.stdout.encoding or "utf-8"))
