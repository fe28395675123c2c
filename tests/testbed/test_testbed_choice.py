"""Which broker is chosen, and what is said when there is none."""

from contextlib import AbstractContextManager, ExitStack, nullcontext

import pytest

from testbed import BrokerUnavailable, RunningBroker
from testbed.engine import candidates, socket_parent, why_not_private
from testbed.find import default_management_url, find_broker, first_of
from testbed.needs import needed

BROKER = RunningBroker("a test", "4.3.6", "amqp://guest:secret@127.0.0.1:1/", "http://127.0.0.1:2")


def works() -> AbstractContextManager[RunningBroker]:
    """Stand for a way that gives a broker."""
    return nullcontext(BROKER)


class Fails(AbstractContextManager[RunningBroker]):
    """Stand for a way that gives none."""

    def __enter__(self) -> RunningBroker:
        raise BrokerUnavailable("container: no Docker engine answers")

    def __exit__(self, *_details: object) -> None:
        return None


def test_the_first_way_that_works_is_used() -> None:
    """A way that fails is followed by the next one."""
    with ExitStack() as stack:
        assert first_of((Fails, works), stack) is BROKER


def test_no_way_left_names_every_reason_and_the_ways_to_get_a_broker() -> None:
    """The message holds what was tried and what to do, a line for each."""
    with pytest.raises(BrokerUnavailable) as caught, ExitStack() as stack:
        first_of((Fails, Fails), stack)

    lines = str(caught.value).splitlines()
    assert lines[:3] == [
        "no RabbitMQ broker to be had",
        "  tried: container: no Docker engine answers",
        "  tried: container: no Docker engine answers",
    ]
    assert [line.partition(":")[0] for line in lines[3:]] == ["  fix"] * 3


def test_a_named_broker_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """DELAYCTL_URL is never quietly replaced by another broker, and its password is not shown."""
    monkeypatch.setenv("DELAYCTL_URL", "amqp://app:secret@127.0.0.1:1/")
    monkeypatch.setenv("DELAYCTL_MANAGEMENT_URL", "http://127.0.0.1:1")

    with pytest.raises(BrokerUnavailable, match=r"DELAYCTL_URL: the broker at 127\.0\.0\.1 does not answer") as caught:
        find_broker().__enter__()

    assert "secret" not in str(caught.value)


def test_the_credentials_of_a_broker_do_not_reach_its_repr() -> None:
    """What is logged of a broker is how it was found and its version."""
    assert repr(BROKER) == "RunningBroker(how='a test', version='4.3.6')"


@pytest.mark.parametrize(
    ("url", "management_url"),
    [
        ("amqp://guest:guest@broker.example:5672/%2F", "http://broker.example:15672"),
        ("amqp://guest:guest@[::1]:5672/", "http://[::1]:15672"),
    ],
)
def test_management_is_looked_for_beside_the_broker(url: str, management_url: str) -> None:
    """Without an address of its own the management API is on the same host, port 15672."""
    assert default_management_url(url) == management_url


@pytest.mark.parametrize(
    ("env", "uid", "reason"),
    [
        ({}, 0, "set DELAYCTL_START_DOCKER=1 to have a private one started"),
        ({"CI": "true"}, 1000, "that needs root"),
        ({"CI": "true", "DOCKER_HOST": "unix:///x"}, 0, "DOCKER_HOST names one, which does not answer"),
    ],
)
def test_an_engine_is_not_started_unasked(env: dict[str, str], uid: int, reason: str) -> None:
    """A private engine needs a word that it is wanted, root, and no other engine that was named."""
    refusal = why_not_private(env, uid)

    assert refusal is not None
    assert refusal.startswith(reason)


def test_a_named_engine_is_the_only_candidate() -> None:
    """DOCKER_HOST leaves no other address to be tried."""
    assert candidates({"DOCKER_HOST": "unix:///x", "XDG_RUNTIME_DIR": "/run/user/1"}) == ["unix:///x"]


def test_an_engines_sockets_never_have_too_long_a_path() -> None:
    """A long folder for temporary files is left aside, since a socket's path may have 107 characters."""
    assert socket_parent("/var/tmp") == "/var/tmp"
    assert socket_parent("/home/runner/work/_temp/of/a/very/long/path") == "/tmp"


def test_without_a_broker_a_test_is_skipped_on_a_laptop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the skip is the whole message."""
    monkeypatch.delenv("CI", raising=False)

    with pytest.raises(pytest.skip.Exception, match="no RabbitMQ broker to be had"), needed(Fails()):
        pass


def test_without_a_broker_a_test_fails_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """A green run on CI is never one that tested nothing."""
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="no RabbitMQ broker to be had"), needed(Fails()):
        pass
