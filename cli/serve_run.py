"""Runs the web page: works out who may come in, takes the port, and says where the page is."""

import secrets
import signal
import socket
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path

import click
from delayctl.cli.bedside import Bedside
from delayctl.cli.serve_stage import LiveStage
from delayctl.cli.serve_views import map_style
from delayctl.topology.duration import Duration
from delayctl.topology.errors import DelayctlError
from delayctl.web.door import Door, is_everywhere, is_loopback, names_for, shown_host
from delayctl.web.server import Serving, bound, serve

_SHORTEST_TOKEN = 16
_IN_THE_CLEAR = "Warning: what is sent is not encrypted: put a proxy with TLS before it, and name it with --name."


@dataclass(frozen=True, slots=True)
class Page:
    """The page as it was ordered."""

    file: str
    host: str
    port: int
    names: tuple[str, ...]
    may_redrive: bool
    token_file: str | None
    every: Duration
    opens: bool

    @property
    def needs_token(self) -> bool:
        """Say whether not everybody may come in; by another machine's name somebody leads others here."""
        is_for_this_machine = all(map(is_loopback, (self.host, *self.names)))
        return self.may_redrive or self.token_file is not None or not is_for_this_machine

    def token(self) -> str | None:
        """The token that is asked for: the one of the file, or a new one where one is needed."""
        if self.token_file is not None:
            return _token_in(self.token_file)
        return secrets.token_urlsafe(32) if self.needs_token else None


def show(bedside: Bedside, page: Page) -> None:
    """Serve the page until Ctrl-C or SIGTERM."""
    stage, token = LiveStage(bedside, title=Path(page.file).name), page.token()
    door = Door(names_for(page.host, page.names), is_everywhere(page.host), token)
    listener = bound(page.host, page.port)
    address = _address(listener, page, token)
    serving = Serving(stage, door, page.every.ms / 1000, page.may_redrive, map_style())

    def ready() -> None:
        click.echo(f"Serving {page.file} at {address}")
        click.echo(_told(page), err=True)
        if page.opens:
            stack.enter_context(opened(address))

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with listener, ExitStack() as stack, suppress(KeyboardInterrupt):  # Which is how it is meant to end.
        serve(serving, listener, ready)
    click.echo("Stopped.", err=True)


def _address(listener: socket.socket, page: Page, token: str | None) -> str:
    """Where the page is; a token that nobody knows yet is behind the sign that browsers don't send."""
    name = page.host
    if is_everywhere(name):
        name = "::1" if ":" in name else "127.0.0.1"
    secret = f"#token={token}" if token is not None and page.token_file is None else ""
    return f"http://{shown_host(name)}:{listener.getsockname()[1]}/{secret}"


def _told(page: Page) -> str:
    words = [] if is_loopback(page.host) else [f"{_IN_THE_CLEAR}\n"]
    words.append("Parked messages may be moved. " if page.may_redrive else "Read-only. ")
    if page.token_file is not None:
        words.append(f"The token in {page.token_file} is asked for. ")
    elif page.needs_token:
        words.append("The address holds the token: whoever has it may come in. ")
    return "".join([*words, "Ctrl-C ends it."])


@contextmanager
def opened(address: str) -> Iterator[None]:
    """Have the address opened through a file that only its owner reads: others see the arguments of a program."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(address)}">')
        file.flush()
        webbrowser.open(Path(file.name).as_uri())
        yield


def _token_in(file: str) -> str:
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise DelayctlError(f"the token can't be read: {reason}", where=file, fix="name a readable file") from None
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        fix = f"make one: python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > {file}"
        what = f"the token is not {_SHORTEST_TOKEN} or more plain characters in one line"
        raise DelayctlError(what, where=file, fix=fix)
    return token
