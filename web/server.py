"""Runs the server until it is told to stop."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import uvicorn
from delayctl.topology.errors import BadOption, DelayctlError
from delayctl.web.app import House, application
from delayctl.web.door import Door
from delayctl.web.guard import Sessions
from delayctl.web.stage import Stage
from delayctl.web.viewers import Viewers
from delayctl.web.watch import Watch
from starlette.routing import BaseRoute

_BACKLOG = 128
_ENDS_WITHIN_S = 3


@dataclass(frozen=True)
class Serving:
    """How a stage is served."""

    stage: Stage
    door: Door
    every_s: float
    may_redrive: bool = False
    style: str = ""  # The colours of the map.
    extra: Iterable[BaseRoute] = ()


def bound(host: str, port: int) -> socket.socket:
    """Take the address, or say who has it."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        raise BadOption(f"--host {host} is no address of this machine", fix="write 127.0.0.1, or 0.0.0.0") from error
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        fix = "choose another one with --port; --port 0 takes any that is free"
        raise DelayctlError(f"port {port} of {host} can't be had: {error.strerror}", fix=fix) from error
    return opened


def serve(serving: Serving, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; the listener is closed in the end. Raises the OSError of an `on_ready` that nobody hears."""
    watch = Watch(serving.stage, serving.every_s)
    viewers = Viewers(lambda: watch.latest, lambda: server.should_exit)
    watch.tell = viewers.tell
    sessions = Sessions(listener.getsockname()[1])
    house = House(
        serving.stage, watch, viewers, serving.door, sessions, serving.may_redrive, serving.style, serving.extra
    )
    config = uvicorn.Config(
        application(house),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        proxy_headers=False,
        timeout_graceful_shutdown=_ENDS_WITHIN_S,
    )
    server = _Server(config, on_ready)
    asyncio.run(_until_told(server, listener))
    if server.unheard is not None:
        raise server.unheard


async def _until_told(server: uvicorn.Server, listener: socket.socket) -> None:
    await server.serve(sockets=[listener])


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self.unheard: OSError | None = None  # Why nobody could be told.

    async def main_loop(self) -> None:
        """Answer until told to stop; where nobody hears that it answers, it ends at once, and in good order."""
        try:
            self._on_ready()
        except OSError as error:
            self.unheard = error
        else:
            await super().main_loop()
