"""The management API over connections that a broker may end."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from delayctl.topology.access import access_from
from delayctl.topology.errors import ManagementUnavailable
from delayctl.topology.management import Management


class Forgetful(BaseHTTPRequestHandler):
    """Answers one request on each connection, and hangs up when it hears another one."""

    protocol_version = "HTTP/1.1"
    is_patient = True

    def do_GET(self) -> None:
        """Tell the version, or nothing."""
        if not self.is_patient:
            self.close_connection = True
            return
        self.is_patient = False
        answer = b'{"rabbitmq_version": "4.3.6"}'
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class Elsewhere(Forgetful):
    """RabbitMQ's management plugin, asked for what lies behind a wrong path: it finds nothing there."""

    def do_GET(self) -> None:
        """Say so as RabbitMQ does."""
        answer = b'{"error": "Object Not Found", "reason": "Not Found"}'
        self.send_response(404)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Mute(Forgetful):
    """Hangs up at once."""

    is_patient = False


@pytest.fixture
def management(request: pytest.FixtureRequest) -> Iterator[Management]:
    """An API that is answered by the given handler."""
    with ThreadingHTTPServer(("127.0.0.1", 0), request.param) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        yield Management(access_from("amqp://guest:guest@127.0.0.1:5672/", management_url=url), "/")
        server.shutdown()


@pytest.mark.parametrize("management", [Forgetful], indirect=True)
def test_a_connection_that_was_ended_while_it_was_idle_is_made_anew(management: Management) -> None:
    """The one who asks notices nothing."""
    assert [management.version() for _ in range(3)] == ["4.3.6"] * 3


@pytest.mark.parametrize("management", [Mute], indirect=True)
def test_one_that_never_answers_is_given_up(management: Management) -> None:
    """After two questions."""
    with pytest.raises(ManagementUnavailable):
        management.version()


def test_where_nothing_listens_a_stopped_broker_is_thought_of_first() -> None:
    """That, or a wrong URL, is more common than a plugin that is off."""
    access = access_from("amqp://guest:guest@127.0.0.1:1/", management_url="http://127.0.0.1:1")

    with pytest.raises(ManagementUnavailable) as caught:
        Management(access, "/").version()

    assert caught.value.fix == (
        "start the broker, or correct --url or DELAYCTL_URL; if it runs, switch the API on "
        "(rabbitmq-plugins enable rabbitmq_management), or correct --management-url"
    )


def test_a_port_without_tls_is_told() -> None:
    """No certificate mends that."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{server.server_address[1]}"

        with pytest.raises(ManagementUnavailable) as caught:
            Management(access_from("amqp://guest:guest@127.0.0.1:5672/", management_url=url), "/").version()
        server.shutdown()

    assert caught.value.what == f"{url}/api does not speak TLS"
    assert caught.value.fix == "write http:// in --management-url, or name the port of its TLS (15671)"


QUESTIONS: dict[str, Callable[[Management], object]] = {
    "is there a queue": lambda management: management.has_queue("delay.lock.queue"),
    "is there a virtual host": Management.check_vhost,
    "what is there": lambda management: management.read(""),
    "how many messages": lambda management: management.heard_of("q"),
}


@pytest.mark.parametrize("management", [Elsewhere], indirect=True)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_path_behind_which_nothing_is_found_is_told_from_what_is_missing(
    management: Management, question: Callable[[Management], object]
) -> None:
    """Where not even the overview is found, the URL is wrong, and no queue or virtual host missing."""
    with pytest.raises(ManagementUnavailable) as caught:
        question(management)

    assert caught.value.what.endswith("/api answers, but not as RabbitMQ's management API does")
    assert caught.value.fix == (
        "correct --management-url: it names what stands before /api, such as http://localhost:15672"
    )
