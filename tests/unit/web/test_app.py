"""What the server answers, and whom; without a socket and without a broker."""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from delayctl.topology.errors import Unreachable
from delayctl.web.app import House, application, files
from delayctl.web.door import Door, names_for
from delayctl.web.guard import Sessions
from delayctl.web.stage import Chosen
from delayctl.web.viewers import Viewers
from delayctl.web.watch import Watch
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from testbed.wait import until
from tests.support.stage import ToldStage

TOKEN = "a-token-that-nobody-guesses"
HOST, ORIGIN = "127.0.0.1:8025", "http://127.0.0.1:8025"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body as a value."""
        return json.loads(self.body)


@dataclass
class Server:
    """The application, asked directly."""

    stage: ToldStage = field(default_factory=ToldStage)
    token: str | None = None
    may_redrive: bool = False

    def __post_init__(self) -> None:
        watch = Watch(self.stage, 1.0)
        viewers = Viewers(lambda: watch.latest, lambda: True)
        door = Door(names_for("127.0.0.1"), token=self.token)
        extra = (Route("/metrics", lambda _: PlainTextResponse("waiting 3")),)
        self._app = application(
            House(self.stage, watch, viewers, door, Sessions(8025), self.may_redrive, ":root{}", extra)
        )

    def ask(self, path: str, body: Any = None, **headers: str) -> Answer:
        """A GET, or with a body a POST that comes from the page; headers are added or, with nothing in them, left out."""
        sent = {"host": HOST, **({} if body is None else {"origin": ORIGIN}), **headers}
        content = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return asyncio.run(self._asked("GET" if body is None else "POST", path, content, sent))

    def leave(self, path: str) -> Answer:
        """A POST that comes from the page, which goes away before its body is through."""
        headers = {"host": HOST, "origin": ORIGIN, "authorization": f"Bearer {TOKEN}"}
        return asyncio.run(self._asked("POST", path, None, headers))

    async def _asked(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        came: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"} if body is None else {"type": "http.request", "body": body}

        async def send(message: Any) -> None:
            came.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
        }
        await self._app(scope, receive, send)
        answered = {name.decode(): value.decode() for name, value in came[0]["headers"]}
        return Answer(came[0]["status"], answered, b"".join(message.get("body", b"") for message in came[1:]))


class TestStrangers:
    """Who is not let in."""

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:8025", "", "127.0.0.1.evil.example"])
    @pytest.mark.parametrize("path", ["/", "/api/state", "/nowhere"])
    def test_a_foreign_name(self, host: str, path: str) -> None:
        """A page of somebody else's, whose name was made to lead here, gets nothing."""
        assert Server().ask(path, host=host).code == 421

    @pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9", "null", ""])
    @pytest.mark.parametrize("path", ["/api/redrive", "/api/parked", "/api/what-if", "/api/session"])
    def test_a_foreign_page(self, origin: str, path: str) -> None:
        """Nobody else's page makes this one's user act, with or without a token."""
        server = Server(may_redrive=True, token=TOKEN)

        answer = server.ask(path, {"queue": "q", "all": True}, origin=origin, authorization=f"Bearer {TOKEN}")

        assert (answer.code, server.stage.asked, server.stage.looks) == (403, [], 0)

    def test_a_foreign_page_may_not_read_either(self) -> None:
        """Browsers say where a request comes from when it crosses."""
        assert Server().ask("/api/state", origin="http://evil.example").code == 403

    @pytest.mark.parametrize("path", ["/api/state", "/api/events", "/api/history", "/api/map", "/metrics", "/nowhere"])
    def test_no_token(self, path: str) -> None:
        """All that tells something needs it, also what others add."""
        assert Server(token=TOKEN).ask(path).code == 401
        assert Server(token=TOKEN).ask(path, authorization="Bearer wrong").code == 401
        assert Server(token=TOKEN).ask(path, cookie="delayctl-8025=wrong").code == 401

    def test_the_page_itself_is_for_everybody(self) -> None:
        """It is where the token is asked for."""
        assert [Server(token=TOKEN).ask(path).code for path in files()] == [200] * len(files())


class TestLetIn:
    """Who is."""

    def test_by_bearer(self) -> None:
        """For programs."""
        assert Server(token=TOKEN).ask("/api/state", authorization=f"Bearer {TOKEN}").code == 200
        assert Server(token=TOKEN).ask("/metrics", authorization=f"Bearer {TOKEN}").body == b"waiting 3"

    def test_by_cookie(self) -> None:
        """A cookie is given for the token; scripts can't read it, other sites don't send it, and it is not the token."""
        server = Server(token=TOKEN, may_redrive=True)
        before = server.ask("/api/session").json

        given = server.ask("/api/session", {"token": TOKEN})
        cookie = given.headers["set-cookie"]

        assert before == {"in": False, "may_redrive": None}
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert TOKEN not in cookie
        assert server.ask("/api/state", cookie=cookie.partition(";")[0]).code == 200
        assert server.ask("/api/session", cookie=cookie.partition(";")[0]).json == {"in": True, "may_redrive": True}

    def test_not_for_another(self) -> None:
        """Nor where there is none."""
        assert Server(token=TOKEN).ask("/api/session", {"token": "another"}).code == 401
        assert Server(token=TOKEN).ask("/api/session", {"token": 5}).code == 401
        assert Server().ask("/api/session", {"token": ""}).code == 401


def test_every_answer_tells_browsers_what_not_to_do() -> None:
    """Refusals included."""
    server = Server()

    answers = [server.ask("/"), server.ask("/api/state"), server.ask("/nowhere"), server.ask("/", host="evil.example")]

    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert answers[1].headers["cache-control"] == "no-store"


def test_the_page_asks_nobody_else_for_anything() -> None:
    """All that it refers to is served from here, nothing is written into it, and its scripts set no markup."""
    contents = {path: Server().ask(path).body.decode() for path in files()}

    assert {"/", "/page.css", "/main.js", "/icon.svg"} <= contents.keys()
    for path, text in contents.items():
        assert "//cdn" not in text, path
        assert "https:" not in text, path
        assert not [
            word for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(") if word in text
        ]
    assert " style=" not in contents["/"]
    assert "<script>" not in contents["/"]


class TestRedrive:
    """Messages are moved only where that was allowed."""

    def test_read_only_by_default(self) -> None:
        """And the answer says how it can be otherwise."""
        server = Server()

        answer = server.ask("/api/redrive", {"queue": "orders.dlq", "all": True})

        assert (answer.code, server.stage.asked) == (403, [])
        assert "--allow-redrive" in answer.json["fix"]

    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({"all": True}, Chosen("q")),
            ({"ids": ["a", "b"]}, Chosen("q", ids=frozenset({"a", "b"}))),
            ({"kind": {"key": "#", "reason": None}}, Chosen("q", kind=("#", None))),
            ({"kind": {"key": "k", "reason": "why"}}, Chosen("q", kind=("k", "why"))),
        ],
    )
    def test_what_is_chosen(self, asked: dict[str, Any], expected: Chosen) -> None:
        """All, some by their ids, or a kind."""
        server = Server(may_redrive=True)

        assert server.ask("/api/redrive", {"queue": "q", **asked}).json == {"moved": 1}
        assert server.stage.asked == [expected]

    @pytest.mark.parametrize(
        "asked",
        [
            {},
            {"all": "yes"},
            {"ids": []},
            {"ids": [1]},
            {"ids": "a"},
            {"kind": {}},
            {"kind": "k"},
            {"queue": 1, "all": True},
        ],
    )
    def test_nothing_is_moved_by_mistake(self, asked: dict[str, Any]) -> None:
        """What can't be understood is not taken for all."""
        server = Server(may_redrive=True)

        answer = server.ask("/api/redrive", {"queue": "q", **asked})

        assert (answer.code, server.stage.asked) == (422, [])


class TestParked:
    """Pages of what is parked."""

    def test_pages_and_words(self) -> None:
        """It is looked into once, until somebody wants it anew."""
        messages = [{"id": f"m-{number}", "key": "order.created", "body": None} for number in range(250)]
        server = Server(ToldStage(messages=messages))

        first = server.ask("/api/parked", {"queue": "q"}).json
        third = server.ask("/api/parked", {"queue": "q", "offset": 200}).json
        found = server.ask("/api/parked", {"queue": "q", "text": "M-24"}).json

        assert [len(first["messages"]), len(third["messages"]), first["found"]] == [100, 50, 250]
        assert [message["id"] for message in found["messages"]] == ["m-24", *(f"m-24{digit}" for digit in range(10))]
        assert server.stage.looks == 1
        assert server.ask("/api/parked", {"queue": "q", "fresh": True}).code == 200
        assert server.stage.looks == 2

    @pytest.mark.parametrize("trouble", [None, Unreachable("the broker is gone", fix="start it")])
    def test_seen_anew_after_a_redrive(self, trouble: Exception | None) -> None:
        """Also after one that failed: some may have been moved before."""
        server = Server(may_redrive=True)
        assert server.ask("/api/parked", {"queue": "q"}).code == 200
        server.stage.trouble = trouble

        answer = server.ask("/api/redrive", {"queue": "q", "all": True})
        server.stage.trouble = None

        assert answer.code == (422 if trouble else 200)
        assert server.ask("/api/parked", {"queue": "q"}).code == 200
        assert server.stage.looks == 2

    @pytest.mark.parametrize("asked", [{}, {"queue": 5}, {"queue": "q", "offset": -1}, {"queue": "q", "text": 5}])
    def test_nonsense(self, asked: dict[str, Any]) -> None:
        """Is refused."""
        assert Server().ask("/api/parked", asked).code == 422


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b"\xff", b"5", b'{"queue": "\\ud800"}', b"[" * 200_000, b'{"queue":' * 100_000],
    ids=["nothing", "words", "list", "no text", "number", "half a character", "many lists", "many objects"],
)
@pytest.mark.parametrize("path", ["/api/what-if", "/api/parked", "/api/redrive", "/api/session"])
def test_what_is_no_request(path: str, body: bytes) -> None:
    """A word, and no traceback."""
    answer = Server(may_redrive=True).ask(path, body)

    assert (answer.code, answer.json["fix"]) == (422, "send a JSON object")


def test_too_large() -> None:
    """Nobody fills the memory."""
    assert Server().ask("/api/what-if", b"x" * (1 << 21)).json["error"] == "the request is too large"


def test_troubles_of_the_broker_are_told() -> None:
    """With the fix."""
    answer = Server(ToldStage(trouble=Unreachable("nothing answers", fix="start it"))).ask(
        "/api/parked", {"queue": "q"}
    )

    assert (answer.code, answer.json) == (422, {"error": "nothing answers", "fix": "start it", "at": None})


@dataclass
class SlowStage(ToldStage):
    """A stage that thinks, and looks, until it is let go."""

    begun: int = 0
    may_end: threading.Event = field(default_factory=threading.Event)

    def what_if(self, question: Mapping[str, str]) -> dict[str, Any]:
        """Say the question again, in the end."""
        self._wait()
        return super().what_if(question)

    def parked(self, queue: str) -> dict[str, Any]:
        """Show the messages, in the end."""
        self._wait()
        return super().parked(queue)

    def _wait(self) -> None:
        self.begun += 1
        assert self.may_end.wait(60)

    def has_begun(self, count: int) -> bool:
        """Say whether it is busy with so many."""
        return self.begun == count


def test_questions_leave_room_for_all_else() -> None:
    """A few may wait; more are told to come again, and may then."""
    stage = SlowStage()
    server = Server(stage)
    with ThreadPoolExecutor() as pool:
        first = []
        try:
            for number in range(4):
                first.append(pool.submit(server.ask, "/api/what-if", {"rates": "5/s"}))
                until(partial(stage.has_begun, number + 1), 60)
            refused = server.ask("/api/what-if", {"rates": "5/s"})
        finally:
            stage.may_end.set()
        answers = [each.result(60).code for each in first]

    assert (refused.code, refused.json["fix"]) == (503, "ask again in a while")
    assert answers == [200] * 4
    assert server.ask("/api/what-if", {"rates": "5/s"}).code == 200


def test_looks_leave_room_for_all_else() -> None:
    """One looks and a few wait for it; more are told to come again, and may then."""
    stage = SlowStage()
    server = Server(stage)
    with ThreadPoolExecutor(8) as pool:
        try:
            looks = [pool.submit(server.ask, "/api/parked", {"queue": f"q-{number}"}) for number in range(8)]
            until(lambda: sum(look.done() for look in looks) == 4, 60)
            refused = [look.result().json["fix"] for look in looks if look.done()]
        finally:
            stage.may_end.set()
        codes = sorted(look.result(60).code for look in looks)

    assert refused == ["ask again in a while"] * 4
    assert codes == [200] * 4 + [503] * 4
    assert server.ask("/api/parked", {"queue": "q"}).code == 200


@pytest.mark.parametrize("path", ["/api/what-if", "/api/parked", "/api/redrive", "/api/session"])
def test_who_goes_away_within_a_request(path: str) -> None:
    """Nobody is there to hear more than that, and it is nothing to log."""
    answer = Server(may_redrive=True, token=TOKEN).leave(path)

    assert (answer.code, answer.body) == (400, b"")


def test_what_if() -> None:
    """The question is handed on; the answer, or what is wrong with the question, comes back."""
    assert Server().ask("/api/what-if", {"rates": "5/s", "x": 5}).json == {"question": {"rates": "5/s"}}
    assert Server().ask("/api/what-if", {}).json["error"] == "nobody says how many come"
