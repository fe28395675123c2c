"""Who may come in."""

import pytest
from delayctl.web.door import Door, is_loopback, names_for, shown_host

LOCAL = Door(names_for("127.0.0.1"))
OTHER_LOOPBACK = Door(names_for("127.0.0.2"))
EVERYWHERE = Door(names_for("0.0.0.0", ["delays.example.com"]), takes_addresses=True)


@pytest.mark.parametrize(
    ("door", "host", "expected"),
    [
        (LOCAL, "127.0.0.1:8025", True),
        (LOCAL, "localhost:8025", True),
        (LOCAL, "LOCALHOST:8025", True),
        (LOCAL, "[::1]:8025", True),
        (LOCAL, "127.0.0.2:8025", False),
        (OTHER_LOOPBACK, "127.0.0.2:8025", True),
        (OTHER_LOOPBACK, "localhost:8025", True),
        (OTHER_LOOPBACK, "127.0.0.3:8025", False),
        (Door(names_for("[::1]")), "[::1]:8025", True),
        (LOCAL, "evil.example:8025", False),
        (LOCAL, "127.0.0.1.evil.example", False),
        (LOCAL, "localhost@evil.example", False),
        (LOCAL, "evil.example@localhost", False),
        (LOCAL, "localhost/evil", False),
        (LOCAL, "localhost:port", False),
        (LOCAL, "192.168.1.7:8025", False),
        (LOCAL, "", False),
        (LOCAL, None, False),
        (EVERYWHERE, "192.168.1.7:8025", True),
        (EVERYWHERE, "[fe80::1]:8025", True),
        (EVERYWHERE, "delays.example.com", True),
        (EVERYWHERE, "evil.example", False),
        (EVERYWHERE, "[fe80::1", False),
    ],
)
def test_hosts(door: Door, host: str | None, expected: bool) -> None:
    """A name that somebody else had lead here is not ours; an address can't be led anywhere."""
    assert door.knows_host(host) is expected


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://127.0.0.1:8025", "127.0.0.1:8025", True),
        ("https://127.0.0.1:8025", "127.0.0.1:8025", True),
        ("http://127.0.0.1:9999", "127.0.0.1:8025", False),
        ("http://localhost:8025", "127.0.0.1:8025", False),
        ("http://evil.example", "127.0.0.1:8025", False),
        ("http://evil.example", "evil.example", False),
        ("null", "127.0.0.1:8025", False),
        ("", "127.0.0.1:8025", False),
        (None, "127.0.0.1:8025", False),
    ],
)
def test_origins(origin: str | None, host: str, expected: bool) -> None:
    """A request comes from a page of this very server, or it is a stranger's."""
    assert LOCAL.knows_origin(origin, host) is expected


def test_token() -> None:
    """The whole of it, and never where there is none."""
    door = Door(names_for("127.0.0.1"), token="s3cret-s3cret-s3cret")

    others = ("s3cret", "", "é", "\ud800")

    assert door.opens_to("s3cret-s3cret-s3cret")
    assert not [text for text in others if door.opens_to(text)]
    assert not LOCAL.opens_to("")
    assert "s3cret" not in repr(door)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("db1", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    """Only what this machine alone can reach."""
    assert is_loopback(host) is expected


def test_addresses_in_a_url() -> None:
    """Colons need brackets."""
    assert [shown_host(host) for host in ("::1", "[::1]", "127.0.0.1")] == ["[::1]", "[::1]", "127.0.0.1"]
