"""How often a message may be given back, and whether it keeps its place."""

from typing import Any

import pytest
from delayctl.cli.host import Host
from delayctl.cli.pending_views import Found, Place, pending_text
from delayctl.cli.returning import Returning, most_returns, returning
from delayctl.consumers.sighting import Sighting
from delayctl.topology.access import access_from
from delayctl.topology.management import Management


def limits(argument: int | None = None, policy: int | None = None) -> dict[str, Any]:
    """A quorum queue with these limits."""
    arguments = {} if argument is None else {"x-delivery-limit": argument}
    return {"arguments": arguments, "effective_policy_definition": {} if policy is None else {"delivery-limit": policy}}


@pytest.mark.parametrize(
    ("found", "version", "expected"),
    [
        (limits(), "3.10.8", None),
        (limits(), "3.13.7", None),
        (limits(), "4.0.0", 10),
        (limits(), "4.3.1", 10),
        (limits(), "unknown", 10),
        (limits(6), "3.10.8", 3),
        (limits(1), "4.0.0", 1),
        (limits(0), "4.0.0", 1),
        (limits(-1), "4.3.1", None),
        (limits(100, -1), "4.3.1", 50),
        (limits(-1, -1), "4.3.1", None),
        (limits(100, 40), "4.3.1", 20),
        (limits(None, 40), "4.3.1", 20),
        ({"arguments": {}, "effective_policy_definition": []}, "4.3.1", 10),
    ],
)
def test_half_of_what_the_broker_allows(found: dict[str, Any], version: str, expected: int | None) -> None:
    """Once at least, and as often as one likes where there is no limit: before 4.0 there is none by itself."""
    assert most_returns(found, version) == expected


@pytest.mark.parametrize(("kind", "expected"), [("classic", True), ("quorum", False), (None, None)])
def test_without_the_management_api_the_file_tells_the_kind(kind: str | None, expected: bool | None) -> None:
    """Of other queues nothing is known."""
    access = access_from("amqp://127.0.0.1:9/", management_url="http://127.0.0.1:9", timeout_s=0.5)
    host = Host(access, "/", Management(access, "/"))

    assert returning(host, "some.dlq", kind) == Returning(10, expected)


def test_a_queue_of_an_unknown_kind_is_not_called_a_quorum_queue() -> None:
    """It may keep its order."""
    found = Found(Place("some.dlq", None), 1, (Sighting("m", "k", "", 0),), keeps_places=None)

    assert pending_text([found], 0, is_listed=False).splitlines()[-1] == (
        "some.dlq may have another order now: what kind of queue it is could not be asked, and some put what was looked at "
        "behind the others."
    )
