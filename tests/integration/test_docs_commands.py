"""What pages say to type is typed on a real broker: page by page, in a folder with the page's files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.wait import until
from tests.conftest import WAYS
from tests.support.doc_files import edit, is_about, lay_out
from tests.support.doc_lines import Way, lines, pages_with, way
from tests.support.doc_runs import expected_code, is_shown
from tests.support.doc_typist import Typist
from tests.support.hand_made import HandMade
from tests.support.rabbit import Rabbit

PAGES = pages_with(Way.LIVE, Way.SHELL)
# Pages that begin where nothing is applied yet; on the others the page's file is.
FROM_NOTHING = {
    "README.md",
    "docs/export.md",
    "docs/import.md",
    "docs/inserting.md",
    "docs/operations.md",
    "docs/start.md",
}
# Commands whose answers have no figures of a broker that has been at work for a while.
COMPARED = {"plan", "apply", "explain", "import", "publish", "consume", "permissions", "pending"}
NOT_COMPARED = {
    ("docs/consuming.md", "delayctl consume"): "shows messages of three clients, one of them in colour",
    ("docs/redrive.md", "delayctl pending"): "shows twelve thousand messages, an hour after three others were parked",
}
EXPLAIN = "delayctl explain topology.yaml --exchange orders.exchange --key order.created"
USERS = ("shop", "timeouts", "ops")


@pytest.fixture
def typist(rabbit: Rabbit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Typist]:
    """Types in a folder of its own, and with the virtual host as the one that is meant; users are gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELAYCTL_URL", rabbit.broker.url)
    monkeypatch.setenv("DELAYCTL_MANAGEMENT_URL", rabbit.broker.management_url)
    monkeypatch.setenv("DELAYCTL_VHOST", rabbit.vhost)
    monkeypatch.setenv("BROWSER", "true")  # A program that opens nothing.
    yield Typist(rabbit, tmp_path)
    for name in {user["name"] for user in rabbit.api("GET", "users")} & {*USERS}:
        rabbit.api("DELETE", f"users/{name}")


# What brokers do differently is tested with the commands; pages show the answers of one.
@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("broker", [max(WAYS)], indirect=True, scope="session")
def test_what_a_page_says_to_type(page: str, typist: Typist) -> None:
    """Line by line, each with the exit code, and where that can be, the answer that is shown."""
    lay_out(page, typist.folder)
    if page == "docs/import.md":
        (typist.folder / "topology.yaml").unlink()
    if page not in FROM_NOTHING:
        assert typist.rabbit.delayctl("apply", "topology.yaml", "--yes").code == 0

    for line in (line for line in lines() if line.page == page and way(line) in (Way.OFFLINE, Way.LIVE, Way.SHELL)):
        edit(line, typist.folder)
        for happened in (scene for key, scene in BEFORE.items() if is_about(key, line)):
            happened(typist.rabbit)
        ran = typist.type(line)

        assert ran.code == expected_code(line), f"{line}\n{ran.out}{ran.err}"
        is_compared = way(line) is not Way.SHELL and all(words[0] in COMPARED for words in line.commands)
        if is_compared and not any(is_about(key, line) for key in NOT_COMPARED):
            assert is_shown(line, ran), f"{line}\n{ran.out}{ran.err}"


def test_the_tables_speak_of_what_is_there() -> None:
    """Every entry of a line, and every page that is named of one with lines."""
    assert [key for key in (*BEFORE, *NOT_COMPARED) if not any(is_about(key, line) for line in lines())] == []
    assert {*PAGES} >= FROM_NOTHING


def shorten_a_level(rabbit: Rabbit) -> None:
    """Somebody sets a policy."""
    rabbit.put_policy("shorter", r"^delay\.15m", message_ttl=60_000)
    rabbit.await_effective("delay.15m.queue", {"message-ttl": 60_000})


def await_figures(rabbit: Rabbit) -> None:
    """Readers are slower than the figures of a broker, which tell verify that a message waits."""
    until(lambda: rabbit.queue("delay.1m.queue").get("messages"), 30)


def work_by_hand(rabbit: Rabbit) -> None:
    """A binding removed, a queue declared anew with another limit, a policy set."""
    assert rabbit.delayctl("apply", "topology.yaml", "--yes").code == 0
    with rabbit.channel() as channel:
        channel.exchange_unbind("delay.15m.exchange", "orders.exchange", "order.created")
        channel.queue_delete("delay.1m.queue")
    made = HandMade(rabbit)
    made.queue(
        "delay.1m.queue",
        x_queue_type="classic",
        x_message_ttl=60_000,
        x_max_length=10,
        x_overflow="drop-head",
        x_dead_letter_exchange="delay.exchange",
    )
    made.bind("delay.1m.exchange", "delay.1m.queue")
    rabbit.publish("delay.1m.exchange", "order.created", "1", "2", "3")
    rabbit.put_policy("shorter", r"^delay\.5m", message_ttl=1000)
    rabbit.await_effective("delay.5m.queue", {"message-ttl": 1000})


def send_back(rabbit: Rabbit) -> None:
    """A shorter level, and a queue of somebody else's that sends what it is tired of back into the delay."""
    shorten_a_level(rabbit)
    made = HandMade(rabbit)
    made.queue("reports.queue", x_message_ttl=300_000, x_dead_letter_exchange="delay.15m.exchange")
    made.bind("delay.exchange", "reports.queue", "order.*")


def join_others(rabbit: Rabbit) -> None:
    """Exchange and queue of others, with a binding between them."""
    made = HandMade(rabbit)
    made.exchange("site.exchange")
    made.queue("mails.queue")
    made.bind("site.exchange", "mails.queue", "user.created")


def allow_too_much(rabbit: Rabbit) -> None:
    """Two of the users, with other rights than they need."""
    for name, write, read in (("shop", ".*", ""), ("timeouts", "^delay", "^orders\\.timeout\\.queue$")):
        rabbit.api("PUT", f"users/{name}", {"password": "secret", "tags": ""})
        rabbit.api("PUT", f"permissions/{{vhost}}/{name}", {"configure": "", "write": write, "read": read})


# What a page tells has happened before a line is typed; by how the line and its answer begin.
BEFORE: dict[tuple[str, str], Callable[[Rabbit], None]] = {
    ("README.md", "delayctl plan topology.yaml --detailed-exitcode"): work_by_hand,
    ("docs/doctor.md", "delayctl doctor topology.yaml --watch-for"): shorten_a_level,
    ("docs/explain.md", f"{EXPLAIN} --live"): send_back,
    ("docs/import.md", "delayctl import"): lambda rabbit: HandMade(rabbit).recipe(),
    ("docs/inserting.md", "delayctl plan insert.yaml"): join_others,
    ("docs/inserting.md", "delayctl apply without.yaml"): lambda rabbit: rabbit.publish(
        "site.exchange", "user.created", *map(str, range(12))
    ),
    ("docs/permissions.md", "delayctl permissions topology.yaml --check"): allow_too_much,
    ("docs/permissions.md", "delayctl permissions topology.yaml --apply"): lambda rabbit: rabbit.api(
        "PUT", "users/ops", {"password": "secret", "tags": ""}
    ),
    ("docs/start.md", "delayctl verify"): await_figures,
    ("docs/status.md", "delayctl status topology.yaml\nnot healthy"): shorten_a_level,
    ("docs/verify.md", "delayctl verify topology.yaml --up-to 10s --timeout 3"): shorten_a_level,
}
