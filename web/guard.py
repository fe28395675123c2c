"""Stands before every route: refuses foreign hosts, foreign pages and strangers, and tells browsers what not to do."""

import secrets

from delayctl.web.door import Door
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_SAFE = ("GET", "HEAD")
_MOST_SESSIONS = 1_000
Refusal = tuple[int, str, str]


class Sessions:
    """The cookies that were given for the token; they end with the server."""

    def __init__(self, port: int) -> None:
        self.cookie = f"delayctl-{port}"  # Browsers share cookies between all ports of a host.
        self._known: list[str] = []

    def begin(self) -> str:
        """A new one; the oldest is forgotten when there are too many."""
        self._known = [*self._known[1 - _MOST_SESSIONS :], secrets.token_urlsafe(32)]
        return self._known[-1]

    def knows(self, session: str | None) -> bool:
        """Say whether a cookie is one of these."""
        return session is not None and any(
            secrets.compare_digest(session.encode(), one.encode()) for one in self._known
        )


def admits(door: Door, sessions: Sessions, request: HTTPConnection) -> bool:
    """Say whether somebody has the token, or a cookie that was given for it; where there is none, everybody may come in."""
    if door.token is None:
        return True
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and door.opens_to(token.strip()):
        return True
    return sessions.knows(request.cookies.get(sessions.cookie))


class Guard:
    """A wrapper of the whole application; `open_paths` are for everybody who knows the host."""

    def __init__(self, app: ASGIApp, door: Door, sessions: Sessions, open_paths: frozenset[str]) -> None:
        self._app, self._door, self._sessions, self._open_paths = app, door, sessions, open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, with_headers)
            return
        code, what, fix = refusal
        await JSONResponse({"error": what, "fix": fix}, code)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is not let in."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if not self._door.knows_host(host):
            fix = "open it by the address that delayctl serve printed; --name adds a name"
            return 421, "this server does not go by that name", fix
        is_told = scope["method"] not in _SAFE or origin is not None
        if is_told and not self._door.knows_origin(origin, host):
            return 403, "the request comes from a foreign page", "use the page of this server"
        if scope["path"] not in self._open_paths and not admits(self._door, self._sessions, HTTPConnection(scope)):
            return 401, "a token is needed", "open the address that delayctl serve printed, which has it"
        return None
