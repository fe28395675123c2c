"""The routes: the page and its files, what is pushed, and what can be asked for."""

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from delayctl.topology.errors import DelayctlError
from delayctl.web.door import Door
from delayctl.web.guard import Guard, Sessions, admits
from delayctl.web.parked import Parked
from delayctl.web.snapshot_json import beat_json, history_json, state_json, to_text
from delayctl.web.stage import Chosen, Json, Stage
from delayctl.web.viewers import Viewers
from delayctl.web.watch import Watch
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

_FOLDER = Path(__file__).parent
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_STYLE, _SESSION = "/map.css", "/api/session"
_POINTS = 240
_MOST_BODY = 1 << 20
_MOST_AT_ONCE = 4  # Of what takes long. One is seen to, the others wait; more would keep the threads from all else.


class Unusable(DelayctlError):
    """A request that says nothing that could be done."""


@dataclass(frozen=True)
class House:
    """All that the routes need; `extra` are routes that somebody else adds."""

    stage: Stage
    watch: Watch
    viewers: Viewers
    door: Door
    sessions: Sessions
    may_redrive: bool = False
    style: str = ""  # The colours of the map.
    extra: Iterable[BaseRoute] = field(default_factory=tuple)


def application(house: House) -> ASGIApp:
    """The whole server."""
    desk = _Desk(house)
    routes = [
        *(Route(path, _file(name)) for path, name in files().items()),
        Route(_STYLE, _text(house.style, "text/css")),
        Route(_SESSION, desk.session, methods=["GET", "POST"]),
        Route("/api/events", desk.events),
        Route("/api/state", desk.state),
        Route("/api/history", desk.history),
        Route("/api/map", desk.map),
        Route("/api/parked", desk.parked, methods=["POST"]),
        Route("/api/redrive", desk.redrive, methods=["POST"]),
        Route("/api/what-if", desk.what_if, methods=["POST"]),
        *house.extra,
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        house.viewers.open()
        house.watch.start()
        yield
        await run_in_threadpool(house.watch.stop)

    handlers: Mapping[Any, Any] = {
        DelayctlError: _refused,
        ClientDisconnect: _gone,
        404: _missing,
        405: _missing,
        500: _unforeseen,
    }
    server = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    # The page itself holds nothing that is anybody's secret; all that it shows comes from elsewhere.
    return Guard(server, house.door, house.sessions, frozenset({*files(), _STYLE, _SESSION}))


def files() -> dict[str, str]:
    """The files of the front end by the paths that they are served at."""
    names = sorted(file.name for file in _FOLDER.iterdir() if file.suffix in _TYPES)
    return {"/" if name == "page.html" else f"/{name}": name for name in names}


def _file(name: str) -> Callable[[Request], Response]:
    return _text((_FOLDER / name).read_text(encoding="utf-8"), _TYPES[Path(name).suffix])


def _text(content: str, media_type: str) -> Callable[[Request], Response]:
    def serve(_: Request) -> Response:
        # Small and local: asked for anew each time, so that another version is never mixed with this one.
        return Response(content, media_type=media_type, headers={"cache-control": "no-cache"})

    return serve


class _Desk:
    """Answers what is asked below /api/."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._parked = Parked(house.stage)
        self._looks, self._questions = _Few("too many look at what is parked"), _Few("too many ask what if")

    async def session(self, request: Request) -> Response:
        """Say whether somebody is in, and let in whoever brings the token."""
        house = self._house
        if request.method != "POST":
            is_in = admits(house.door, house.sessions, request)
            return JSONResponse({"in": is_in, "may_redrive": house.may_redrive if is_in else None})
        if not house.door.opens_to(str((await _asked(request)).get("token", ""))):
            return JSONResponse({"error": "that is not the token", "fix": "copy the whole address again"}, 401)
        answer = JSONResponse({"in": True, "may_redrive": house.may_redrive})
        is_secure = request.headers.get("origin", "").startswith("https://")
        answer.set_cookie(
            house.sessions.cookie, house.sessions.begin(), httponly=True, samesite="strict", secure=is_secure, path="/"
        )
        return answer

    async def events(self, _: Request) -> Response:
        """The stream of all that happens."""
        if self._house.viewers.are_many:
            return JSONResponse({"error": "too many are looking", "fix": "close a page"}, 503)
        return StreamingResponse(self._house.viewers.stream(), media_type="text/event-stream")

    async def state(self, _: Request) -> Response:
        """The same once, for programs."""
        snapshot = self._house.watch.latest
        return _json({**state_json(snapshot), **beat_json(snapshot)})

    async def history(self, _: Request) -> Response:
        """What waited when, so that charts don't begin empty."""
        return _json(history_json(self._house.watch.history(), _POINTS))

    async def map(self, _: Request) -> Response:
        """The picture of the topology."""
        observation = self._house.watch.latest.observation
        return Response(observation.map if observation else "", media_type="image/svg+xml")

    async def parked(self, request: Request) -> Response:
        """A page of what is parked in a queue. It is a POST, since messages are taken and put back for it."""
        return await self._looks.answered(self._parked.page, await _asked(request))

    async def redrive(self, request: Request) -> Response:
        """Move messages, where that was allowed."""
        if not self._house.may_redrive:
            fix = "start it with --allow-redrive, or run delayctl redrive"
            return JSONResponse({"error": "this page is read-only", "fix": fix}, 403)
        chosen = _chosen(await _asked(request))
        try:
            return _json(await run_in_threadpool(self._house.stage.redrive, chosen))
        finally:  # Of a run that failed, too, some were moved.
            self._parked.forget(chosen.queue)
            self._house.watch.look_soon()

    async def what_if(self, request: Request) -> Response:
        """Run a scenario."""
        asked = await _asked(request)
        question = {name: value for name, value in asked.items() if isinstance(value, str)}
        return await self._questions.answered(self._house.stage.what_if, question)


class _Few:
    """Requests of one kind, of which a few at a time are answered and all others refused."""

    def __init__(self, refusal: str) -> None:
        self._refusal = refusal
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)

    async def answered(self, answer: Callable[[dict[str, Any]], Json], asked: dict[str, Any]) -> Response:
        """What `answer` says, on a thread of its own; or that somebody has to come again."""
        if not self._room.acquire(blocking=False):
            return JSONResponse({"error": self._refusal, "fix": "ask again in a while"}, 503)
        try:
            return _json(await run_in_threadpool(answer, asked))
        finally:
            self._room.release()


async def _asked(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MOST_BODY:
            raise Unusable("the request is too large", fix="ask for less at once")
    try:
        asked = json.loads(body)
        json.dumps(asked, ensure_ascii=False).encode()  # Fails with halves of characters, which no answer could repeat.
    except (ValueError, RecursionError) as error:  # The latter is of thousands of brackets within each other.
        raise Unusable("the request is not JSON", fix="send a JSON object") from error
    if not isinstance(asked, dict):
        raise Unusable("the request is not an object", fix="send a JSON object")
    return asked


def _chosen(asked: Mapping[str, Any]) -> Chosen:
    queue, ids, kind = asked.get("queue"), asked.get("ids"), asked.get("kind")
    if not isinstance(queue, str):
        raise Unusable("no queue is named", fix='send {"queue": "orders.dlq", "all": true}')
    if isinstance(ids, list) and ids and all(isinstance(one, str) for one in ids):
        return Chosen(queue, ids=frozenset(ids))
    if isinstance(kind, dict) and isinstance(kind.get("key"), str):
        reason = kind.get("reason")
        return Chosen(queue, kind=(kind["key"], reason if isinstance(reason, str) else None))
    if asked.get("all") is True:
        return Chosen(queue)
    raise Unusable("no message is named", fix='send "ids": [...], "kind": {"key": ..., "reason": ...} or "all": true')


def _json(value: object) -> Response:
    return Response(to_text(value), media_type="application/json")


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, DelayctlError)
    return JSONResponse({"error": error.what, "fix": error.fix, "at": error.where}, 422)


async def _gone(_: Request, __: Exception) -> Response:
    """For who went away before the request was through: an answer that nobody hears."""
    return Response(status_code=400)


async def _missing(_: Request, error: Exception) -> Response:
    code = getattr(error, "status_code", 404)
    return JSONResponse({"error": "there is no such page", "fix": "open /"}, code)


async def _unforeseen(_: Request, error: Exception) -> Response:
    what = f"delayctl met something it did not foresee: {type(error).__name__}"
    return JSONResponse({"error": what, "fix": "this is a bug, please report it"}, 500)
