"""`delayctl permissions` without a broker: what is printed."""

import json
import shlex
from pathlib import Path

import pytest

from tests.support.commands import delayctl
from tests.support.golden import check_golden

FILE = """version: 1
delay: {levels: [1m, 5m]}
routes:
  - {from: orders.exchange, key: order.created, delay: 5m, to: orders.queue}
retry:
  orders.queue: {levels: [1m], max: 2, park: orders.parked}
"""
USERS = """permissions:
  shop: publisher
  "o'neil $HOME": {role: consumer, queues: orders.queue}
  ops: operator
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with users."""
    monkeypatch.chdir(tmp_path)
    Path("topology.yaml").write_text(FILE + USERS, encoding="utf-8")
    return "topology.yaml"


def test_for_an_administrator(file: str) -> None:
    """Patterns to read, and lines to paste."""
    ran = delayctl("permissions", file)

    assert (ran.code, ran.err) == (0, "")
    check_golden("permissions.txt", ran.out)


def test_roles_where_no_user_is_named(file: str) -> None:
    """All of them, with placeholders."""
    Path(file).write_text(FILE, encoding="utf-8")

    ran = delayctl("permissions", file, "--vhost", "my shop")

    assert ran.code == 0
    check_golden("permissions_roles.txt", ran.out)


def test_the_lines_survive_a_shell(file: str) -> None:
    """Whatever a user or a virtual host is called."""
    printed = delayctl("permissions", file, "--output", "json", "--vhost", "v $x").out
    lines = delayctl("permissions", file, "--vhost", "v $x").out.splitlines()

    commands = [shlex.split(line) for line in lines if line.startswith("rabbitmqctl set_permissions")]
    assert commands == [
        ["rabbitmqctl", "set_permissions", "-p", "v $x", user["user"], user["configure"], user["write"], user["read"]]
        for user in json.loads(printed)["users"]
    ]


def test_one_role_and_one_user(file: str) -> None:
    """Of the file, or anybody."""
    of_the_file = json.loads(delayctl("permissions", file, "--role", "consumer", "--output", "json").out)
    anybody = json.loads(delayctl("permissions", file, "--role", "consumer", "--user", "new", "--output", "json").out)

    assert [user["user"] for user in of_the_file["users"]] == ["o'neil $HOME"]
    assert anybody["users"][0] == {**of_the_file["users"][0], "user": "new"}


def test_an_unknown_user_without_a_role(file: str) -> None:
    """Is a slip, and the near name is suggested."""
    ran = delayctl("permissions", file, "--user", "shpo")

    assert ran.code == 64
    assert "--user 'shpo' is not in the file (did you mean 'shop'?)" in ran.err


def test_checking_nobody(file: str) -> None:
    """Without users there is nothing to compare."""
    Path(file).write_text(FILE, encoding="utf-8")

    ran = delayctl("permissions", file, "--check")

    assert ran.code == 1
    assert "there is no user to look at" in ran.err


def test_look_or_set(file: str) -> None:
    """Not both at once."""
    assert delayctl("permissions", file, "--check", "--apply").code == 64


def test_a_pattern_that_newer_brokers_refuse(file: str) -> None:
    """Is printed all the same, with a warning."""
    targets = ", ".join(chr(ord("a") + i % 26) * 40 + str(i * i) for i in range(100))
    Path(file).write_text(f"version: 1\nroutes: [{{key: k, delay: 1m, to: [{targets}]}}]\n", encoding="utf-8")

    ran = delayctl("permissions", file, "--role", "consumer")

    assert ran.code == 0
    assert "Warning: the read pattern of CONSUMER has" in ran.err
    assert "RabbitMQ 4.3 takes 1,024 at most" in ran.err
