"""A small web server for /metrics: one reading serves all who ask within a moment."""

import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import click
from delayctl.topology.errors import DelayctlError
from delayctl.topology.exposition import CONTENT_TYPE

_PATH = "/metrics"
_PATIENCE_S = 10  # With a client that says nothing.


class Shared:
    """What many may ask for and few should make: made anew only where it is older than `max_age_s`."""

    def __init__(self, make: Callable[[], str], *, max_age_s: float, clock: Callable[[], float]) -> None:
        self._make, self._max_age_s, self._clock = make, max_age_s, clock
        self._lock = threading.Lock()
        self._text, self._made_at = "", float("-inf")

    def text(self) -> str:
        """The last one, or a new one; who asks while it is made waits for it."""
        with self._lock:
            if self._clock() - self._made_at >= self._max_age_s:
                self._text = self._make()
                self._made_at = self._clock()
            return self._text


def serving(address: tuple[str, int], text: Callable[[], str]) -> ThreadingHTTPServer:
    """A server that is ready to serve; `with` closes it."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of clients that went away."""

    class Handler(_Handler):
        make = staticmethod(text)

    try:
        return Server(address, Handler)
    except (OSError, OverflowError, UnicodeError) as error:
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        reason = error.strerror if isinstance(error, OSError) else "no such host"
        raise DelayctlError(
            f"can't listen at {host}:{address[1]}: {reason}",
            fix="give --listen an address of this machine and a free port",
        ) from error


def address_url(server: ThreadingHTTPServer) -> str:
    """Where a server is to be found; the port 0 has become a real one."""
    host, port = str(server.server_address[0]), server.server_address[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{_PATH}"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    timeout = _PATIENCE_S
    server_version = "delayctl"
    sys_version = ""
    make: Callable[[], str]

    def do_GET(self) -> None:
        """Answer with a reading."""
        status, kind, text = self._answer()
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 (as the base class calls it)

    def _answer(self) -> tuple[HTTPStatus, str, str]:
        plain = "text/plain; charset=utf-8"
        if self.path.partition("?")[0] != _PATH:
            return HTTPStatus.NOT_FOUND, plain, f"There is nothing here but {_PATH}.\n"
        try:
            return HTTPStatus.OK, CONTENT_TYPE, self.make()
        except Exception as error:  # What nobody foresaw ends one scrape, and is no traceback.
            click.echo(f"Error: delayctl met something it did not foresee: {type(error).__name__}", err=True)
            return HTTPStatus.INTERNAL_SERVER_ERROR, plain, "delayctl met something it did not foresee.\n"

    def log_message(self, format: str, *args: object) -> None:
        """Keep no log of scrapes."""
